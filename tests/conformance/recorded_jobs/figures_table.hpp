// The figures of all recorded jobs, and which of the rules that hold for them each one breaks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "tests/conformance/recorded_jobs/job_figures.hpp"

namespace bubblesim::testing {

inline constexpr double kTimesAgreeWithin = 0.001;    ///< of the iteration time
inline constexpr double kBubblesAgreeWithin = 0.01;   ///< of the window
inline constexpr double kRoundingOfShares = 0.001;    ///< of sensitivities: whole nanoseconds
inline constexpr double kBusyAbove = 0.9;  ///< what is busy above this share is waited for
/// Of a job whose own operations are busy above kBusyAbove: kernels twice as fast save a third.
inline constexpr double kLeastOfBusyKernels = 2.0 / 3;

/// What must hold of the figures of any job.
enum class Rule : std::uint8_t {
  kReadable,  ///< the files are a recording that a run can repeat
  kTimes,     ///< iteration times agree
  kShares,    ///< each sensitivity lies between 0 and 1, and they add up to no more than 1
  kBusy,      ///< what is busy most of the time is waited for
  kBubbles,   ///< shares of bubbles agree
};

struct BrokenRule {
  Rule rule{};
  std::string text;  ///< how, with the numbers
};

/// The rules that `figures` break. Empty: none.
[[nodiscard]] std::vector<BrokenRule> broken_rules(const Result<JobFigures>& figures);

/// One job and what came of it.
struct JobRow {
  std::string name;
  Result<JobFigures> figures;
};

/// Of every job of a data folder, in order; on every core.
[[nodiscard]] std::vector<JobRow> rows_of(const std::string& data_folder);

/// A table for people, as Markdown.
[[nodiscard]] std::string markdown(const std::vector<JobRow>& rows);
/// The same with all digits, tab-separated: a header, then a line a job.
[[nodiscard]] std::string tsv(const std::vector<JobRow>& rows);

}  // namespace bubblesim::testing
