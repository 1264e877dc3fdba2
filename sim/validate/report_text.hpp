// What tables were read with, and summaries, as text. The same rows give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/report.hpp"

namespace bubblesim::validate {

/// The setting and devices of each table, columns that are not read, and figures left out. Empty
/// without a table.
[[nodiscard]] std::string tables_text(const std::vector<TableNote>& tables);

[[nodiscard]] std::string summary_text(const std::vector<Summary>& summaries);


}  // namespace bubblesim::validate
