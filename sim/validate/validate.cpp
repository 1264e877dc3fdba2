#include "sim/validate/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/nearest.hpp"
#include "sim/validate/judges.hpp"

namespace bubblesim::validate {
namespace {

using Rows = CheckedResult<std::vector<ReportRow>>;

void say(const ValidateRequest& request, const std::string& text) {
  if (request.progress) request.progress(text);
}

Rows judge_file(const ValidateRequest& request, const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const TrainingTable table,
                             load_training_table(path, request.setting, request.configs));
  return judge_training(table, request.threads, [&](std::size_t done, std::size_t of) {
    say(request, fmt::format("{}: {} of {} rows", table.name, done, of));
  });
}

struct Check {
  const char* name;
  Rows (*judge)(const ValidateRequest&);  ///< null: a file of the folder of tables
};

const std::array<Check, 7>& checks() {
  static constexpr std::array<Check, 7> kChecks{{
      {"megatron_deepspeed_a100_multi_node", nullptr},
      {"megatron_deepspeed_a100_single_node", nullptr},
      {"published_training_runs", nullptr},
      {"all_reduce",
       [](const ValidateRequest& request) {
         return judge_all_reduces(request.data, request.configs);
       }},
      {"schedules", [](const ValidateRequest&) -> Rows { return judge_schedules(); }},
      {"pipefill",
       [](const ValidateRequest& request) {
         return judge_pipefill(request.configs, request.threads);
       }},
      {"graphpipe", [](const ValidateRequest&) -> Rows { return judge_graphpipe(); }},
  }};
  return kChecks;
}

Rows run_check(const Check& check, const ValidateRequest& request) {
  say(request, check.name);
  if (check.judge != nullptr) return check.judge(request);
  return judge_file(request, request.tables + "/" + check.name + ".csv");
}

}  // namespace

std::vector<std::string> validate_names() {
  std::vector<std::string> out;
  for (const Check& check : checks()) out.emplace_back(check.name);
  return out;
}

CheckedResult<std::vector<ReportRow>> validate_parallel(const ValidateRequest& request) {
  if (!request.table.empty()) return judge_file(request, request.table);
  const std::vector<std::string> names = validate_names();
  if (!request.only.empty() &&
      std::find(names.begin(), names.end(), request.only) == names.end()) {
    return fail("", "--only", unknown_name_message("table", request.only, names));
  }
  std::vector<ReportRow> out;
  for (const Check& check : checks()) {
    if (!request.only.empty() && request.only != check.name) continue;
    BUBBLESIM_ASSIGN_OR_RETURN(std::vector<ReportRow> rows, run_check(check, request));
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

}  // namespace bubblesim::validate
