#include "sim/validate/row_role.hpp"

namespace bubblesim::validate {

std::string_view role_name(RowRole role) { return role == RowRole::kFit ? "fit" : "judge"; }

Result<RowRole> role_of(const CsvTable& table, std::size_t row) {
  const std::string_view text = table.text(row, "role");
  if (text == "fit") return RowRole::kFit;
  if (text == "judge" || text.empty()) return RowRole::kJudge;
  return table.fault(row, "role", "\"fit\" or \"judge\"");
}

}  // namespace bubblesim::validate
