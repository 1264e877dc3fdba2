// bubblesim validate sharing: measured co-location pairs against simulated ones.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "sim/app/validate_commands.hpp"
#include "sim/validate/judge_sharing.hpp"
#include "sim/validate/sharing_text.hpp"

namespace bubblesim::app {
namespace {

struct SharingArguments {
  std::string dir = "../shared/validation";
  std::string table, setting = "colocation_a100";
  std::vector<std::string> systems;
  std::size_t threads = 0;
  JudgeOutputs outputs;
};

CheckedResult<std::vector<validate::SharingRow>> rows_of(const SharingArguments& arguments) {
  const std::string path =
      arguments.table.empty() ? arguments.dir + "/colocation_a100.csv" : arguments.table;
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::read(path));
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<validate::SharingRow> rows,
                             validate::read_sharing_rows(table));
  const auto& kept = arguments.systems;
  if (kept.empty()) return rows;
  std::erase_if(rows, [&](const validate::SharingRow& row) {
    return std::find(kept.begin(), kept.end(), row.system) == kept.end();
  });
  if (rows.empty()) return fail(path, "--system", "no row of these systems");
  return rows;
}

int validate_sharing(const SharingArguments& arguments, const AppContext& context) {
  const auto rows = rows_of(arguments);
  if (!rows) return report_faults(rows.error());
  const auto stage = validate::find_sharing_stage(arguments.setting, context.config_folder,
                                                  context.policies);
  if (!stage) return report_faults(stage.error());
  ProgressLine line;
  const auto judged = validate::judge_sharing(*rows, *stage, threads_of(arguments.threads),
                                              line.callback());
  line.clear();
  if (!judged) return report_faults(judged.error());
  const auto summaries = validate::summarise_sharing(*judged);
  const auto orders = validate::order_sharing(*judged);
  if (!arguments.outputs.summary) fmt::print("{}\n", validate::sharing_rows_text(*judged));
  fmt::print("{}\n{}", validate::sharing_summary_text(summaries),
             validate::sharing_order_text(orders));
  return finish_judging(arguments.outputs, *judged, validate::sharing_csv(*judged),
                        validate::sharing_json(*judged, summaries, orders));
}

}  // namespace

void add_validate_sharing(CLI::App& parent, AppContext& context) {
  auto arguments = std::make_shared<SharingArguments>();
  CLI::App* it = parent.add_subcommand(
      "sharing", "Co-location pairs: an inference service beside a training job on one GPU under "
                 "each system of the table. Exit code 1 if a row could not be predicted for a "
                 "reason other than a stated one.");
  it->add_option("--dir", arguments->dir, "Folder of the measured tables")->capture_default_str();
  it->add_option("--table", arguments->table,
                 "This table: a CSV file with the columns of colocation_a100.csv");
  it->add_option("--setting", arguments->setting,
                 "A file of configs/validation: device, arrivals, policies of the systems")
      ->capture_default_str();
  it->add_option("--system", arguments->systems, "Only rows of this system (may be repeated)");
  add_judge_outputs(*it, arguments->outputs);
  it->add_option("--jobs", arguments->threads, "Threads; 0: one a core")->capture_default_str();
  it->callback(
      [arguments, &context] { context.exit_code = validate_sharing(*arguments, context); });
}

}  // namespace bubblesim::app
