// bubblesim validate: measured tables and published figures against simulated ones.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/app/validate_commands.hpp"
#include "sim/validate/report_text.hpp"
#include "sim/validate/validate.hpp"

namespace bubblesim::app {
namespace {

struct ValidateArguments {
  validate::ValidateRequest request;
  JudgeOutputs outputs;
};

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

ExitCode validate_all(ValidateArguments arguments, const AppContext& context) {
  validate::ValidateRequest& request = arguments.request;
  request.threads = threads_of(request.threads);
  if (!request.setting.empty() && request.table.empty()) {
    return fail({}, "--setting", "expected --table with it");
  }
  if (!request.table.empty() && !request.only.empty()) {
    return fail({}, "--only", "expected either --only or --table");
  }
  request.configs = context.config_folder;
  ProgressLine line;
  request.progress = line.callback();
  BUBBLESIM_ASSIGN_OR_RETURN(const auto report, validate::validate_parallel(request));
  line.clear();
  const auto& rows = report.rows;
  const auto summaries = validate::summarise(rows);
  fmt::print("{}", validate::tables_text(report.tables));
  if (!arguments.outputs.summary) fmt::print("{}\n", validate::rows_text(rows));
  fmt::print("{}", validate::summary_text(summaries));
  return finish_judging(arguments.outputs, rows, validate::rows_csv(rows),
                        validate::report_json(rows, summaries));
}

}  // namespace

void add_judge_outputs(CLI::App& command, JudgeOutputs& outputs) {
  command.add_option("--json", outputs.json, "Write everything as JSON here");
  command.add_option("--csv", outputs.csv, "Write every figure here");
  command.add_flag("--summary", outputs.summary, "Leave single figures out of the text");
}

void add_validate_command(CLI::App& parser, AppContext& context) {
  CLI::App* command = parser.add_subcommand(
      "validate",
      "Simulated against measured: RUN and MEASURED are results.json files of `bubblesim run` and "
      "`bubblesim measure`, or folders of them; each figure's errors, a summary by metric and "
      "policy, and whether the policies come in the measured order. With a subcommand: simulates "
      "what others measured or published, and prints measured, simulated and error of every "
      "row.\n\nExamples:\n"
      "  bubblesim validate out/simulated out/measured --json errors.json\n"
      "  bubblesim validate out/run/results.json out/measured/results.json --csv errors.csv\n"
      "  bubblesim validate out/simulated out/measured --role roles.csv --summary\n"
      "  bubblesim validate parallel --only schedules\n"
      "  bubblesim validate parallel --only graphpipe --summary");
  command->require_subcommand(0, 1);
  add_validate_measured(*command, context);
  auto arguments = std::make_shared<ValidateArguments>();
  arguments->request.tables = "../shared/validation";
  arguments->request.data = "../shared/data";
  arguments->request.threads = 0;
  CLI::App* parallel = command->add_subcommand(
      "parallel", "Synthesised training jobs, their schedules and their network. Exit code 1 if "
                  "a row could not be predicted for a reason other than a stated one.");
  parallel->add_option("--dir", arguments->request.tables, "Folder of the measured tables")
      ->capture_default_str();
  parallel->add_option("--data", arguments->request.data, "Folder of the public data sets")
      ->capture_default_str();
  parallel->add_option("--table", arguments->request.table,
                       "Only this table: a CSV file with the columns of one of the folder's");
  parallel->add_option(
      "--setting", arguments->request.setting,
      "With --table: a file of configs/validation (default: by the table's columns)");
  parallel->add_option("--only", arguments->request.only,
                       "Only one of " + list_of(validate::validate_names()));
  add_judge_outputs(*parallel, arguments->outputs);
  parallel->add_option("--jobs", arguments->request.threads, "Threads; 0: one a core")
      ->capture_default_str();
  context.outputs.writes(*parallel, "--json");
  context.outputs.writes(*parallel, "--csv");
  parallel->callback([arguments, &context] {
    context.exit_code = reported(validate_all(*arguments, context));
  });
}

}  // namespace bubblesim::app
