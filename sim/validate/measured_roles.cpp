#include "sim/validate/measured_roles.hpp"

#include <array>
#include <utility>

#include "sim/base/nearest.hpp"

namespace bubblesim::validate {
namespace {

// Empty: the config is known; else why not.
std::string unknown_config(const std::string& name, const std::vector<MatchedReports>& matched) {
  std::vector<std::string> known;
  for (const MatchedReports& config : matched) {
    if (config.label == name || config.config == name) return {};
    known.push_back(config.label);
  }
  return unknown_name_message("config", name, known);
}

Result<RowRole> role_of(const CsvTable& table, std::size_t row) {
  const std::string_view text = table.text(row, "role");
  if (text == "fit") return RowRole::kFit;
  if (text == "judge" || text.empty()) return RowRole::kJudge;
  return table.fault(row, "role", "\"fit\" or \"judge\"");
}

}  // namespace

std::string_view role_name(RowRole role) { return role == RowRole::kFit ? "fit" : "judge"; }

Result<MeasuredRoles> MeasuredRoles::read(const std::string& path,
                                          const std::vector<MatchedReports>& matched) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::read(path));
  return from(table, matched);
}

Result<MeasuredRoles> MeasuredRoles::parse(std::string_view text, const std::string& file,
                                           const std::vector<MatchedReports>& matched) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::parse(text, file));
  return from(table, matched);
}

Result<MeasuredRoles> MeasuredRoles::from(const CsvTable& table,
                                          const std::vector<MatchedReports>& matched) {
  const auto there = table.expect(std::array<std::string_view, 3>{"config", "policy", "role"});
  if (!there) return tl::make_unexpected(there.error().front());
  MeasuredRoles out;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Rule rule{std::string(table.text(row, "config")), std::string(table.text(row, "policy")),
              RowRole::kJudge};
    BUBBLESIM_ASSIGN_OR_RETURN(rule.role, role_of(table, row));
    if (const std::string why = unknown_config(rule.config, matched); !why.empty()) {
      return fail(table.file(), table.place(row), why);
    }
    if (rule.policy == "*") rule.policy.clear();
    out.rules_.push_back(std::move(rule));
  }
  return out;
}

Result<void> MeasuredRoles::add_fit(const std::string& name,
                                    const std::vector<MatchedReports>& matched) {
  Rule rule{name, {}, RowRole::kFit};
  const std::size_t colon = name.rfind(':');
  if (colon != std::string::npos && !unknown_config(name, matched).empty()) {
    rule.config = name.substr(0, colon);
    rule.policy = name.substr(colon + 1);
  }
  if (const std::string why = unknown_config(rule.config, matched); !why.empty()) {
    return fail("--fit", {}, why);
  }
  rules_.push_back(std::move(rule));
  return {};
}

RowRole MeasuredRoles::role(const MatchedReports& config, const std::string& policy) const {
  RowRole out = RowRole::kJudge;
  for (const Rule& rule : rules_) {
    if (rule.config != config.label && rule.config != config.config) continue;
    if (rule.policy.empty() || rule.policy == policy) out = rule.role;
  }
  return out;
}

}  // namespace bubblesim::validate
