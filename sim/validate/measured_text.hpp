// Simulated against measured as text, CSV and JSON. The same cells give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/measured_summary.hpp"

namespace bubblesim::validate {

/// What stands on either side: devices, and where and when they were measured; says so if a side
/// is not what it should be.
[[nodiscard]] std::string measured_sides_text(const std::vector<MatchedReports>& matched);

/// A block a config: a line a policy and filler, each figure as measured, simulated and error; a
/// "~" follows measured figures whose repetitions are further than the error apart.
[[nodiscard]] std::string measured_cells_text(const std::vector<MeasuredCell>& cells);
/// What is not judged, by reason, failures first; empty if there is none.
[[nodiscard]] std::string measured_missing_text(const std::vector<MeasuredCell>& cells);
[[nodiscard]] std::string measured_summary_text(const std::vector<MeasuredSummary>& summaries);
[[nodiscard]] std::string measured_order_text(const std::vector<MeasuredOrder>& orders);

/// Columns and keys are in OUTPUTS.md.
[[nodiscard]] std::string measured_csv(const std::vector<MeasuredCell>& cells);
[[nodiscard]] std::string measured_json(const std::vector<MeasuredCell>& cells,
                                        const std::vector<MeasuredSummary>& summaries,
                                        const std::vector<MeasuredOrder>& orders);

}  // namespace bubblesim::validate
