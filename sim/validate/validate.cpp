#include "sim/validate/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/nearest.hpp"
#include "sim/validate/judges.hpp"

namespace bubblesim::validate {
namespace {

using Rows = CheckedResult<std::vector<ReportRow>>;

void say(const ValidateRequest& request, const std::string& text) {
  if (request.progress) request.progress(text);
}

CheckedResult<void> judge_file(const ValidateRequest& request, const std::string& path,
                               ParallelReport& out) {
  BUBBLESIM_ASSIGN_OR_RETURN(const TrainingTable table,
                             load_training_table(path, request.setting, request.configs));
  const auto rows =
      judge_training(table, request.threads, [&](std::size_t done, std::size_t total) {
        say(request, fmt::format("{}: {} of {} rows", table.name, done, total));
      });
  out.tables.push_back(table.note);
  out.rows.insert(out.rows.end(), rows.begin(), rows.end());
  return {};
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

CheckedResult<void> run_check(const Check& check, const ValidateRequest& request,
                              ParallelReport& out) {
  say(request, check.name);
  if (check.judge == nullptr) {
    return judge_file(request, request.tables + "/" + check.name + ".csv", out);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<ReportRow> rows, check.judge(request));
  out.rows.insert(out.rows.end(), rows.begin(), rows.end());
  return {};
}

}  // namespace

std::vector<std::string> validate_names() {
  std::vector<std::string> out;
  for (const Check& check : checks()) out.emplace_back(check.name);
  return out;
}

CheckedResult<ParallelReport> validate_parallel(const ValidateRequest& request) {
  ParallelReport out;
  if (!request.table.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(judge_file(request, request.table, out));
    return out;
  }
  const std::vector<std::string> names = validate_names();
  if (!request.only.empty() &&
      std::find(names.begin(), names.end(), request.only) == names.end()) {
    return fail("", "--only", unknown_name_message("table", request.only, names));
  }
  for (const Check& check : checks()) {
    if (!request.only.empty() && request.only != check.name) continue;
    BUBBLESIM_RETURN_IF_ERROR(run_check(check, request, out));
  }
  return out;
}

}  // namespace bubblesim::validate
