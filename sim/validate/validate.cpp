#include "sim/validate/validate.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/base/json.hpp"
#include "sim/validate/judges.hpp"

namespace bubblesim::validate {
namespace {

Json row_json(const ReportRow& row) {
  return {{"table", row.table},
          {"role", role_name(row.role)},
          {"row", row.label},
          {"unit", row.unit},
          {"outcome", outcome_name(row.outcome)},
          {"measured", row.measured},
          {"simulated", row.simulated},
          {"note", row.note},
          {"brief", row.brief}};
}

}  // namespace

Json training_json(const TrainingTable& table, const std::vector<ReportRow>& rows) {
  const Json note = {{"table", table.note.table},
                     {"setting", table.note.setting},
                     {"devices", table.note.devices},
                     {"unread", table.note.unread}};
  Json list = Json::array();
  for (const ReportRow& row : rows) list.push_back(row_json(row));
  return {{"table", note}, {"rows", std::move(list)}};
}

CheckedResult<Json> judge_training_file(const std::string& path, const std::string& setting,
                                        const ValidateRequest& request) {
  BUBBLESIM_ASSIGN_OR_RETURN(const TrainingTable table,
                             load_training_table(path, setting, request.configs));
  const auto rows =
      judge_training(table, request.threads, [&](std::size_t done, std::size_t total) {
        if (!request.progress) return;
        request.progress(fmt::format("{}: {} of {} rows", table.name, done, total));
      });
  return training_json(table, rows);
}

}  // namespace bubblesim::validate
