// What came of judging: a row as measured and as simulated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
};

/// What a table was read with, and what of it nobody reads.
struct TableNote {
  std::string table;
  std::string setting;               ///< a path
  std::vector<std::string> devices;  ///< of predicted rows; of the setting, if there are none
  std::vector<std::string> unread;   ///< columns
};

[[nodiscard]] std::string_view outcome_name(RowOutcome outcome);

}  // namespace bubblesim::validate
