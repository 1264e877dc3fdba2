// bubblesim validate sharing: measured sharing of a GPU against simulated.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "policies/builtin.hpp"
#include "sim/app/validate_commands.hpp"
#include "sim/base/units.hpp"
#include "sim/validate/job_name.hpp"
#include "sim/validate/judge_sharing.hpp"
#include "sim/validate/mechanisms.hpp"
#include "sim/validate/report_text.hpp"
#include "sim/validate/sharing_text.hpp"

namespace bubblesim::app {
namespace {

struct SharingArguments {
  std::string dir = "../shared/validation";
  std::vector<std::string> tables;
  std::string setting;
  std::vector<std::string> systems;
  std::vector<std::string> left_out;
  bool ablation = false;
  std::string window;
  std::size_t threads = 0;
  JudgeOutputs outputs;
};

// Those that are asked for, or all of the folder that are of a known form and there.
CheckedResult<std::vector<std::string>> paths_of(const SharingArguments& arguments) {
  if (!arguments.tables.empty()) return arguments.tables;
  std::vector<std::string> out;
  for (const std::string& name : validate::sharing_tables()) {
    const std::string path = arguments.dir + "/" + name + ".csv";
    if (std::filesystem::exists(path)) out.push_back(path);
  }
  if (out.empty()) return fail(arguments.dir, "--dir", "no table of sharing is in this folder");
  return out;
}

CheckedResult<std::vector<validate::SharingRow>> rows_of(const SharingArguments& arguments,
                                                         validate::SharingStage& stage,
                                                         const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<std::string> paths, paths_of(arguments));
  std::vector<validate::SharingRow> out;
  for (const std::string& path : paths) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const auto rows, validate::add_sharing_table(stage, path, arguments.setting, configs));
    out.insert(out.end(), rows.begin(), rows.end());
  }
  const auto& kept = arguments.systems;
  if (kept.empty()) return out;
  std::erase_if(out, [&](const validate::SharingRow& row) {
    return std::none_of(kept.begin(), kept.end(), [&](const std::string& system) {
      return validate::letters_of(system) == validate::letters_of(row.system);
    });
  });
  if (out.empty()) return fail(paths.front(), "--system", "no row of these systems");
  return out;
}

ExitCode ablate(const SharingArguments& arguments, const std::vector<validate::SharingRow>& rows,
                const validate::SharingStage& stage) {
  ProgressLine line;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto ablations,
      validate::ablate_sharing(rows, stage, threads_of(arguments.threads), line.callback()));
  line.clear();
  fmt::print("{}", validate::ablation_text(ablations));
  return kExitOk;
}

ExitCode validate_sharing(const SharingArguments& arguments, const AppContext& context) {
  const policy::Registry registry = policies::judged_policies();
  BUBBLESIM_ASSIGN_OR_RETURN(auto stage,
                             validate::make_sharing_stage(context.config_folder, registry));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto rows, rows_of(arguments, stage, context.config_folder));
  for (const std::string& mechanism : arguments.left_out) {
    BUBBLESIM_RETURN_IF_ERROR(validate::leave_out(stage, mechanism));
  }
  if (!arguments.window.empty()) {
    const auto window = parse_duration(arguments.window);
    if (!window || *window <= Duration{}) {
      return fail("--over-time", {}, "expected a duration above 0, like 5s");
    }
    stage.window = *window;
  }
  if (arguments.ablation) return ablate(arguments, rows, stage);
  ProgressLine line;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto judged,
      validate::judge_sharing(rows, stage, threads_of(arguments.threads), line.callback()));
  line.clear();
  const auto summaries = validate::summarise_sharing(judged);
  const auto orders = validate::order_sharing(judged);
  fmt::print("{}", validate::tables_text(validate::sharing_table_notes(judged, stage)));
  if (!arguments.outputs.summary) fmt::print("{}\n", validate::sharing_rows_text(judged));
  fmt::print("{}\n{}{}", validate::sharing_summary_text(summaries),
             validate::unjudged_text(validate::unjudged_sharing(judged)),
             validate::sharing_order_text(orders));
  return finish_judging(arguments.outputs, judged, validate::sharing_csv(judged),
                        validate::sharing_json(judged, summaries, orders));
}

}  // namespace

void add_validate_sharing(CLI::App& parent, AppContext& context) {
  auto arguments = std::make_shared<SharingArguments>();
  CLI::App* command = parent.add_subcommand(
      "sharing", "One GPU shared: pairs of jobs, processes of one model, time slices, MIG "
                 "instances and SM caps, under each system of the tables. Rows that cannot be "
                 "judged, such as those of a job without a workload, are counted with the reason. "
                 "Exit code 1 if a row's simulation failed.");
  command->add_option("--dir", arguments->dir, "Folder of the measured tables")
      ->capture_default_str();
  command->add_option("--table", arguments->tables,
                 "This table only: a CSV file with the columns of one of the folder's (may be "
                 "repeated)");
  command->add_option("--setting", arguments->setting,
                 "A file of configs/validation: device, arrivals, policies of the systems. By "
                 "default that of the shipped table with the same columns");
  command->add_option("--system", arguments->systems, "Only rows of this system (may be repeated)");
  std::string names;
  for (const validate::Mechanism& mechanism : validate::sharing_mechanisms()) {
    names += (names.empty() ? "" : ", ") + std::string(mechanism.name);
  }
  command->add_option("--without", arguments->left_out,
                      "Leave a mechanism of the model out (may be repeated): " + names);
  command->add_flag("--ablation", arguments->ablation,
                    "Mean errors with all mechanisms and without each, where they differ");
  command->add_option("--over-time", arguments->window,
                      "Print, below each row, its client's passes a second in one window of this "
                      "length (such as 5s) after another");
  add_judge_outputs(*command, arguments->outputs);
  command->add_option("--jobs", arguments->threads, "Threads; 0: one a core")
      ->capture_default_str();
  context.outputs.writes(*command, "--json");
  context.outputs.writes(*command, "--csv");
  command->callback([arguments, &context] {
    context.exit_code = reported(validate_sharing(*arguments, context));
  });
}

}  // namespace bubblesim::app
