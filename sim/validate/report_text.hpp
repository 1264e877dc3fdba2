// Reports as text, CSV and JSON. The same rows give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/report.hpp"

namespace bubblesim::validate {

/// The setting and devices of each table, columns that are not read, and figures left out. Empty
/// without a table.
[[nodiscard]] std::string tables_text(const std::vector<TableNote>& tables);

/// A line a row: measured, simulated, error; what was not judged with its reason.
[[nodiscard]] std::string rows_text(const std::vector<ReportRow>& rows);
[[nodiscard]] std::string summary_text(const std::vector<Summary>& summaries);

[[nodiscard]] std::string rows_csv(const std::vector<ReportRow>& rows);
[[nodiscard]] std::string report_json(const std::vector<ReportRow>& rows,
                                      const std::vector<Summary>& summaries);

}  // namespace bubblesim::validate
