// bubblesim validate RUN MEASURED: reports of runs against reports of measurements.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "sim/app/app.hpp"
#include "sim/validate/measured_summary.hpp"

namespace bubblesim::app {
namespace {

struct MeasuredArguments {
  std::string run, measured, role;
  std::vector<std::string> fit;
  double tie_percent = 1;
  std::string json, csv;
  bool summary = false;  ///< in the text, single cells are left out
};

Result<validate::MeasuredRoles> roles_of(const MeasuredArguments& arguments,
                                         const std::vector<validate::MatchedReports>& matched) {
  validate::MeasuredRoles roles;
  if (!arguments.role.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(roles, validate::MeasuredRoles::read(arguments.role, matched));
  }
  for (const std::string& name : arguments.fit) {
    BUBBLESIM_RETURN_IF_ERROR(roles.add_fit(name, matched));
  }
  return roles;
}

ExitCode print_and_write(const MeasuredArguments& arguments,
                         const std::vector<validate::MeasuredCell>& cells) {
  const auto summaries = validate::summarise_measured(cells);
  const auto orders = validate::order_measured(cells, arguments.tie_percent / 100);
  if (!arguments.summary) fmt::print("{}\n", validate::measured_cells_text(cells));
  if (const std::string missing = validate::measured_missing_text(cells); !missing.empty()) {
    fmt::print("{}\n", missing);
  }
  fmt::print("{}\n{}", validate::measured_summary_text(summaries),
             validate::measured_order_text(orders));
  BUBBLESIM_RETURN_IF_ERROR(write_output(arguments.csv, validate::measured_csv(cells)));
  BUBBLESIM_RETURN_IF_ERROR(
      write_output(arguments.json, validate::measured_json(cells, summaries, orders)));
  const bool failed = std::ranges::any_of(cells, [](const validate::MeasuredCell& cell) {
    return cell.outcome == validate::RowOutcome::kFailed;
  });
  return failed ? kExitUntrusted : kExitOk;
}

ExitCode validate_measured(const MeasuredArguments& arguments) {
  Errors faults;
  const auto simulated = take(validate::find_reports(arguments.run), faults);
  const auto measured = take(validate::find_reports(arguments.measured), faults);
  if (!faults.empty()) return tl::make_unexpected(faults);
  const auto matched = validate::match_reports(simulated, measured);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto roles, roles_of(arguments, matched));
  fmt::print("{}\n", validate::measured_sides_text(matched));
  return print_and_write(arguments, validate::compare_measured(matched, roles));
}

}  // namespace

void add_validate_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<MeasuredArguments>();
  CLI::App& command = *parser.add_subcommand(
      "validate",
      "Simulated against measured: RUN and MEASURED are results.json files of `bubblesim run` and "
      "`bubblesim measure`, or folders of them; each figure's errors, a summary by metric and "
      "policy, and whether the policies come in the measured order.\n\nExamples:\n"
      "  bubblesim validate out/simulated out/measured --json errors.json\n"
      "  bubblesim validate out/run/results.json out/measured/results.json --csv errors.csv\n"
      "  bubblesim validate out/simulated out/measured --role roles.csv --summary");
  command.add_option("RUN", arguments->run,
                     "Simulated: a results.json, or a folder with results.json and results-*.json "
                     "at any depth")
      ->required();
  command.add_option("MEASURED", arguments->measured,
                     "Measured: the same; several reports of a config are repetitions")
      ->required();
  command.add_option("--role", arguments->role,
                     "A table with the columns config,policy,role: rows with role fit are reported "
                     "apart and judged nowhere");
  command
      .add_option("--fit", arguments->fit,
                  "Configs that took part in a fit, comma-separated: CONFIG or CONFIG:POLICY")
      ->delimiter(',');
  command
      .add_option("--tie", arguments->tie_percent,
                  "Policies whose measured figures are at most so many percent apart are tied")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command.add_option("--json", arguments->json, "Write everything as JSON here");
  command.add_option("--csv", arguments->csv, "Write every figure here");
  command.add_flag("--summary", arguments->summary, "Leave single figures out of the text");
  context.outputs.writes(command, "--json");
  context.outputs.writes(command, "--csv");
  command.footer("Exit codes: 0; 1 something was measured and not simulated; 2 an input fault.");
  command.callback([arguments, &context] {
    context.exit_code = reported(validate_measured(*arguments));
  });
}

}  // namespace bubblesim::app
