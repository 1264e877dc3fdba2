// bubblesim measure: what `bubblesim run` simulates, on a GPU.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/app/shared/gpu_place.hpp"
#include "sim/app/shared/policy_options.hpp"
#include "sim/app/shared/run_arguments.hpp"
#include "sim/measure/measure.hpp"
#include "sim/observe/report.hpp"
#include "sim/observe/summary.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/validate/measured_summary.hpp"

namespace bubblesim::app {
namespace {

struct MeasureArguments {
  PlaceArguments place;
  std::string config, device, out, operations, policies, substrate;
  std::uint32_t rank = 0, rounds = 1;
  measure::MeasureOptions options;
  bool wide = false;
  bool json = false;
};

CheckedResult<run::LoadedRun> load(const MeasureArguments& arguments, const AppContext& context,
                                   ProgressLine& progress) {
  BUBBLESIM_ASSIGN_OR_RETURN(run::RunConfig config,
                             run::read_run_config(arguments.config, context.policies));
  if (!arguments.policies.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(config.policies,
                               choose_policies(arguments.policies, context));
  }
  if (!arguments.device.empty()) config.device = arguments.device;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const run::LoadedRun loaded,
      run::load_run(config, context.device_folder(), progress.callback()));
  // Not returned as it is: tl::expected (1.0) loses memory where it turns a Result of a LoadedRun,
  // whose default has some, into a CheckedResult.
  BUBBLESIM_ASSIGN_OR_RETURN(auto lone, run::lone_rank(loaded, arguments.rank));
  return lone;
}

std::optional<capture::Substrate> substrate_of(const std::string& name) {
  if (name == "time-sliced") return capture::Substrate::kTimeSliced;
  if (name == "mps") return capture::Substrate::kMps;
  if (name == "streams") return capture::Substrate::kStreams;
  return std::nullopt;
}

// "results.json", or of several rounds "results-2.json".
std::string file_of(const MeasureArguments& arguments, const std::string& stem,
                    const std::string& ending, std::uint32_t round) {
  const std::string number = arguments.rounds > 1 ? "-" + std::to_string(round) : "";
  return arguments.out + "/" + stem + number + ending;
}

std::string table_of(const MeasureArguments& arguments, const observe::RunReport& report) {
  const std::string notes = observe::report_notes({&report, 1}, observe::Notes::kAll);
  const auto columns = arguments.wide ? observe::Columns::kAll : observe::Columns::kFew;
  return observe::report_table(report, columns) + (notes.empty() ? "" : "\n" + notes);
}

// The faults of all files: one that cannot be written does not cost the others.
Errors write_round(const MeasureArguments& arguments, const observe::RunReport& report,
                   std::uint32_t round) {
  Errors faults;
  if (arguments.out.empty()) return faults;
  const auto write = [&](const char* stem, const char* ending, const std::string& text) {
    const auto done = write_output(file_of(arguments, stem, ending, round), text);
    if (!done) faults.push_back(done.error());
  };
  write("results", ".json", observe::report_json(report));
  write("results", ".csv", observe::csv_header() + observe::csv_rows(report));
  write("table", ".txt", table_of(arguments, report));
  return faults;
}

// DIR/ARM.csv, or of several rounds DIR/round-2/ARM.csv.
auto writer_of_operations(const MeasureArguments& arguments, std::uint32_t round) {
  std::string folder = arguments.operations + "/";
  if (arguments.rounds > 1) folder += "round-" + std::to_string(round) + "/";
  return [folder](const std::string& arm, const std::string& csv) -> Result<void> {
    std::string name = arm;
    std::ranges::replace(name, '/', '_');
    return write_output(folder + name + ".csv", csv);
  };
}

// One round is an object, several are a list: written as they end.
void print_json(const MeasureArguments& arguments, const observe::RunReport& report) {
  const std::uint32_t round = report.measured->round;
  const bool list = arguments.rounds > 1;
  const char* const before = !list ? "" : round == 1 ? "[\n" : ",\n";
  const char* const after = list && round == arguments.rounds ? "]\n" : "";
  fmt::print("{}{}{}", before, observe::report_json(report), after);
}

void print_answers(const observe::RunReport& report) {
  for (const observe::PolicyResult& policy : report.policies) {
    if (!policy.host) continue;
    if (policy.host->decisions == 0) {
      fmt::print("{}: {}, no launch asked for a verdict\n", policy.policy, policy.host->substrate);
      continue;
    }
    fmt::print("{}: {}, {} decisions, in {:.1f} us (p50), {:.1f} us (p95), {:.1f} us (p99)\n",
               policy.policy, policy.host->substrate, policy.host->decisions,
               to_seconds(policy.host->decision_p50) * 1e6,
               to_seconds(policy.host->decision_p95) * 1e6,
               to_seconds(policy.host->decision_p99) * 1e6);
  }
}

ExitCode measure_run(const MeasureArguments& arguments, AppContext& context) {
  ProgressLine progress;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto lone, load(arguments, context, progress));
  progress.clear();
  BUBBLESIM_ASSIGN_OR_RETURN(auto place,
                             GpuPlace::open(arguments.place, lone.device, progress.callback()));
  const capture::RigPlace& rig = place->rig();
  if (const Errors faults = measure::check_measurable(lone, context.policies, rig);
      !faults.empty()) {
    return tl::make_unexpected(faults);
  }
  measure::MeasureOptions options = arguments.options;
  options.substrate = substrate_of(arguments.substrate);
  bool bad = false;
  Errors unwritten;
  for (std::uint32_t round = 1; round <= arguments.rounds; ++round) {
    if (!arguments.operations.empty()) options.operations = writer_of_operations(arguments, round);
    BUBBLESIM_ASSIGN_OR_RETURN(auto report,
                               measure::measure_policies(lone, context.policies, rig, options));
    progress.clear();
    const std::uint32_t rank = report.measured->rank;
    report.measured = place->measurement();
    report.measured->rank = rank;
    report.measured->round = round;
    if (arguments.json) {
      print_json(arguments, report);
    } else {
      std::fputs(table_of(arguments, report).c_str(), stdout);
      print_answers(report);
    }
    std::fflush(stdout);
    unwritten.add(write_round(arguments, report, round));
    bad = bad || observe::has_error(report);
  }
  if (const auto kept = place->check_settings(); !kept) unwritten.push_back(kept.error());
  if (!unwritten.empty()) return tl::make_unexpected(unwritten);
  return bad ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_measure_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, measure_run, "measure",
      "Measures what `bubblesim run` simulates: one rank of the config's job, its fillers and its "
      "policies as processes that launch stand-in kernels on a GPU, under the same policy "
      "objects. Compare with `bubblesim run --lone-rank` by `bubblesim validate RUN MEASURED`. "
      "Settings of the GPU are left as they are; MPS runs from private folders.\n\n"
      "Examples:\n"
      "  bubblesim measure configs/runs/example.json --policy mps,specinf --out out/measured\n"
      "  bubblesim measure configs/runs/example.json --policy specinf --rounds 3 --gpu 0\n"
      "  bubblesim measure configs/runs/example.json --fake");
  command->add_option("config", arguments->config, "A run config")->required();
  command->add_option("--policy", arguments->policies, "Policies, comma-separated, or all; "
                                                       "NAME:PARAMETER=VALUE sets a parameter "
                                                       "(default: the config's)");
  add_policy_library_option(*command, context);
  command->add_option("--rank", arguments->rank, "The job's rank that runs")->capture_default_str();
  command->add_option("--rounds", arguments->rounds,
                      "Everything so often, baselines too, in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--window", arguments->options.window,
                      "Launches of a filler on the GPU at once; 0: no limit")
      ->capture_default_str();
  command->add_flag("--ask-training", arguments->options.ask_training,
                    "Training waits at the gate too, for policies that hold its launches (dilu); "
                    "it costs training a round trip a launch");
  command->add_option("--as", arguments->substrate,
                      "How processes share the GPU, in place of what policies ask for: where MPS "
                      "cannot run")
      ->check(CLI::IsMember({"time-sliced", "mps", "streams"}));
  command->add_option("--device", arguments->device,
                      "Device whose constants policies are told, a name or a file (default: the "
                      "config's, else the one recorded); with --fake: the GPU");
  add_place_options(*command, arguments->place);
  command->add_option("--out", arguments->out,
                      "Folder for table.txt, results.json and results.csv; of several rounds "
                      "results-1.json and so on");
  command->add_option("--operations", arguments->operations,
                      "Folder for what each operation did, a CSV file a part of the measurement; "
                      "recording slows hosts a little");
  command->add_flag("--wide", arguments->wide, "Every column of the table");
  command->add_flag("--json", arguments->json, "Print JSON in place of the table");
  context.outputs.writes(*command, "--out", files_named({"table", "results"}, ""));
  context.outputs.writes(*command, "--operations", files_named({""}, ".csv"));
}

namespace {

// bubblesim validate RUN MEASURED: reports of runs against reports of measurements.

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
  BUBBLESIM_RETURN_IF_ERROR(
      write_output(arguments.csv, [&] { return validate::measured_csv(cells); }));
  BUBBLESIM_RETURN_IF_ERROR(write_output(
      arguments.json, [&] { return validate::measured_json(cells, summaries, orders); }));
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
  auto [command, arguments] = add_command(
      parser, context, validate_measured, "validate",
      "Simulated against measured: RUN and MEASURED are results.json files of `bubblesim run` and "
      "`bubblesim measure`, or folders of them; each figure's errors, a summary by metric and "
      "policy, and whether the policies come in the measured order.\n\nExamples:\n"
      "  bubblesim validate out/simulated out/measured --json errors.json\n"
      "  bubblesim validate out/run/results.json out/measured/results.json --csv errors.csv\n"
      "  bubblesim validate out/simulated out/measured --role roles.csv --summary");
  command->add_option("RUN", arguments->run,
                     "Simulated: a results.json, or a folder with results.json and results-*.json "
                     "at any depth")
      ->required();
  command->add_option("MEASURED", arguments->measured,
                     "Measured: the same; several reports of a config are repetitions")
      ->required();
  command->add_option("--role", arguments->role,
                     "A table with the columns config,policy,role: rows with role fit are reported "
                     "apart and judged nowhere");
  command
      ->add_option("--fit", arguments->fit,
                  "Configs that took part in a fit, comma-separated: CONFIG or CONFIG:POLICY")
      ->delimiter(',');
  command
      ->add_option("--tie", arguments->tie_percent,
                  "Policies whose measured figures are at most so many percent apart are tied")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command->add_option("--json", arguments->json, "Write everything as JSON here");
  command->add_option("--csv", arguments->csv, "Write every figure here");
  command->add_flag("--summary", arguments->summary, "Leave single figures out of the text");
  context.outputs.writes(*command, {"--json", "--csv"});
  command->footer("Exit codes: 0; 1 something was measured and not simulated; 2 an input fault.");
}

}  // namespace bubblesim::app
