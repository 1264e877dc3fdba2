// What came of judging: a row as measured and as simulated, and summaries by table and role with
// the aim that each is held to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/validate/error_summary.hpp"
#include "sim/validate/row_role.hpp"

namespace bubblesim::validate {

enum class RowOutcome : std::uint8_t {
  kPredicted,
  kStated,  ///< not judged, for a reason that is known and named
  kFailed,  ///< not predicted, though it should be
};

struct ReportRow {
  std::string table;
  RowRole role = RowRole::kJudge;
  std::string label;
  std::string unit;      ///< of both values: "s", "TFLOP/s", "us", "days", "cases", "times"
  double measured = 0;   ///< above 0 if predicted
  double simulated = 0;
  std::string note;      ///< what was searched for; or why the row is not judged
  RowOutcome outcome = RowOutcome::kPredicted;
  bool brief = true;     ///< in the text; others are in CSV, JSON and the summary only

  /// Relative. Precondition: predicted.
  [[nodiscard]] double error() const { return simulated / measured - 1; }
};

/// What a table was read with, and what of it nobody reads.
struct TableNote {
  std::string table;
  std::string setting;               ///< a path
  std::vector<std::string> devices;  ///< of predicted rows; of the setting, if there are none
  std::vector<std::string> unread;   ///< columns
  std::map<std::string, std::size_t> left_out;  ///< rows by metric that is blank or 0 in them
};

/// What an aim bounds.
enum class AimMeasure : std::uint8_t { kMean, kEach };

struct Aim {
  AimMeasure measure = AimMeasure::kMean;
  double bound = 0;  ///< relative; 0: exact
};

/// Relative errors of predicted rows.
struct Summary : ErrorSummary {
  std::string table;
  std::string role;  ///< "fit", "judge"; "all" where a table has both
  std::size_t stated = 0;
  std::size_t failed = 0;
  double within_5_percent = 0;  ///< share of predicted rows
  std::optional<Aim> aim;
  bool met = true;           ///< no aim is met
};

/// The aims are the project's own: mean of 5 % on many nodes, 3 % on one node, 5 % on each
/// published run, 5 % mean on all-reduces, schedules exactly, PipeFill's days to within 5 % (the
/// published ones are whole days), GraphPipe's gain of about 10 % to within 2 points.
[[nodiscard]] std::optional<Aim> aim_of(std::string_view table);

/// Summaries in the order in which tables first appear.
[[nodiscard]] std::vector<Summary> summarise(const std::vector<ReportRow>& rows);

[[nodiscard]] std::string_view outcome_name(RowOutcome outcome);

}  // namespace bubblesim::validate
