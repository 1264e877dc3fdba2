// One recorded job's figures: its iteration time and its bubbles by `inspect`, by `inspect
// --replay` and by `run` under the policy exclusive, and how much of the iteration hangs on
// kernels, host and link.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "tests/validation/data_folder.hpp"

namespace bubblesim::testing {

/// Twice the share of the iteration that is saved where a resource is twice as fast: 1 where all
/// of the time is that resource's, 0 where it is never waited for.
struct Sensitivities {
  double kernels = 0;
  double host = 0;
  double link = 0;
  double fixed = 0;  ///< stays where these and copies are all twice as fast

  [[nodiscard]] double sum() const { return kernels + host + link; }
};

struct JobFigures {
  std::size_t ranks = 0;
  std::size_t recorded = 0;     ///< iterations; where none is marked, the recording is one
  std::size_t used = 0;         ///< of them
  Duration inspect{};           ///< iteration times, mean over ranks
  Duration replay{};
  Duration run{};
  double busy = 0;              ///< share of the inspected window in which any operation runs
  double own = 0;               ///< and in which one other than a collective does
  double host = 0;              ///< share of an iteration in which the host neither waits nor idles
  double link = 0;              ///< and in which a collective whose ranks have all arrived runs
  double inspect_bubbles = 0;   ///< share of the window; mean over ranks
  double run_bubbles = 0;
  double unexplained = 0;       ///< share of the iterations' time that nothing recorded explains
  Sensitivities sensitivities;
  bool device_assumed = false;  ///< no device file lists the recorded GPU

  /// Largest of the three iteration times over the smallest, less one.
  [[nodiscard]] double spread() const;
};

/// Fault: the files are no recording that a run could repeat.
[[nodiscard]] Result<JobFigures> figures_of(const validation::RecordedJob& job);

// The figures of all recorded jobs, and which of the rules that hold for them each one breaks.

inline constexpr double kTimesAgreeWithin = 0.001;    ///< of the iteration time
inline constexpr double kBubblesAgreeWithin = 0.01;   ///< of the window
inline constexpr double kRoundingOfShares = 0.001;    ///< of sensitivities: whole nanoseconds
inline constexpr double kBusyAbove = 0.9;  ///< what is busy above this share is waited for
/// Least sensitivity to kernels of a job whose own operations are busy above kBusyAbove: kernels
/// twice as fast save a third.
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

/// Rows of every job of a data folder, in order; made on every core.
[[nodiscard]] std::vector<JobRow> rows_of(const std::string& data_folder);

/// A table for people, as Markdown.
[[nodiscard]] std::string markdown(const std::vector<JobRow>& rows);
/// The same with all digits, tab-separated: a header, then a line a job.
[[nodiscard]] std::string tsv(const std::vector<JobRow>& rows);

// Expects that two recordings have the same figures, as a user sees them.

inline void expect_same(const JobFigures& figures, const JobFigures& expected) {
  EXPECT_EQ(figures.used, expected.used);
  EXPECT_EQ(figures.inspect, expected.inspect);
  EXPECT_EQ(figures.replay, expected.replay);
  EXPECT_EQ(figures.run, expected.run);
  EXPECT_EQ(figures.inspect_bubbles, expected.inspect_bubbles);
  EXPECT_EQ(figures.run_bubbles, expected.run_bubbles);
  EXPECT_EQ(figures.sensitivities.kernels, expected.sensitivities.kernels);
  EXPECT_EQ(figures.sensitivities.host, expected.sensitivities.host);
  EXPECT_EQ(figures.sensitivities.link, expected.sensitivities.link);
  EXPECT_EQ(figures.sensitivities.fixed, expected.sensitivities.fixed);
}

}  // namespace bubblesim::testing
