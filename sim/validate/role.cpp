#include "sim/validate/role.hpp"

namespace bubblesim::validate {

std::string_view role_name(Role role) { return role == Role::kFit ? "fit" : "judge"; }

Result<Role> role_of(const CsvTable& table, std::size_t row) {
  const std::string_view text = table.text(row, "role");
  if (text == "fit") return Role::kFit;
  if (text == "judge" || text.empty()) return Role::kJudge;
  return table.fault(row, "role", "\"fit\" or \"judge\"");
}

}  // namespace bubblesim::validate
