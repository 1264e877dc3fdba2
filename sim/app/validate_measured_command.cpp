// bubblesim validate RUN MEASURED: reports of runs against reports of measurements.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/app/validate_commands.hpp"
#include "sim/validate/measured_text.hpp"

namespace bubblesim::app {
namespace {

struct MeasuredArguments {
  std::string run, measured, role;
  std::vector<std::string> fit;
  double tie_percent = 1;
  JudgeOutputs outputs;
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
  if (!arguments.outputs.summary) fmt::print("{}\n", validate::measured_cells_text(cells));
  if (const std::string missing = validate::measured_missing_text(cells); !missing.empty()) {
    fmt::print("{}\n", missing);
  }
  fmt::print("{}\n{}", validate::measured_summary_text(summaries),
             validate::measured_order_text(orders));
  return finish_judging(arguments.outputs, cells, validate::measured_csv(cells),
                        validate::measured_json(cells, summaries, orders));
}

ExitCode validate_measured(const MeasuredArguments& arguments) {
  if (arguments.run.empty() || arguments.measured.empty()) {
    return fail("validate", {}, "expected RUN and MEASURED, or the subcommand parallel "
                                "(--help shows it)");
  }
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

void add_validate_measured(CLI::App& command, AppContext& context) {
  auto arguments = std::make_shared<MeasuredArguments>();
  command.add_option("RUN", arguments->run,
                     "Simulated: a results.json, or a folder with results.json and results-*.json "
                     "at any depth");
  command.add_option("MEASURED", arguments->measured,
                     "Measured: the same; several reports of a config are repetitions");
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
  add_judge_outputs(command, arguments->outputs);
  context.outputs.writes(command, "--json");
  context.outputs.writes(command, "--csv");
  command.footer("Exit codes: 0; 1 something was measured and not simulated; 2 an input fault.");
  command.callback([&command, arguments, &context] {
    if (!command.get_subcommands().empty()) return;
    context.exit_code = reported(validate_measured(*arguments));
  });
}

}  // namespace bubblesim::app
