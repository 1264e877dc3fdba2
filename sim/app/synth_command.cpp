// bubblesim synth: a training job that nobody captured, from a model, a plan and a cluster.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "sim/app/app.hpp"
#include "sim/app/synth_text.hpp"
#include "sim/base/output_file.hpp"
#include "sim/pipeline/csv.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/record_trace.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::app {
namespace {

/// Operations of all simulated ranks up to which bubbles are measured without being asked for a
/// trace: a recording takes some 200 bytes of each.
constexpr std::uint64_t kMostRecorded = 2'000'000;

struct SynthArguments {
  synth::JobNames names;
  std::string plan;
  std::vector<std::string> changes;
  std::optional<std::string> fold;
  std::uint32_t iterations = 2;
  std::string output;
  std::string json;
  std::string csv_schedule;
};

std::vector<std::string> folding_words() {
  std::vector<std::string> words;
  for (const auto& [name, folding] : synth::kFoldingNames) words.emplace_back(name);
  return words;
}

CheckedResult<synth::JobNames> names_of(const SynthArguments& arguments) {
  synth::JobNames names = arguments.names;
  names.plan = arguments.plan;
  Errors faults;
  for (const std::string& text : arguments.changes) {
    auto change = synth::parse_plan_change(text);
    if (change) names.changes.push_back(*std::move(change));
    else faults.push_back(change.error());
  }
  for (const auto& [name, folding] : synth::kFoldingNames) {
    if (name == arguments.fold) names.folding = folding;
  }
  if (!faults.empty()) return tl::make_unexpected(std::move(faults));
  return names;
}

// The first iteration begins with nothing under way. Where those of a pass differ, passes are
// whole, and one follows those that hold what is asked for.
std::uint32_t recorded_iterations(const SynthArguments& arguments,
                                  const synth::SynthesisedJob& job) {
  const std::uint32_t in_pass = job.program.ranks.front().iterations;
  if (in_pass <= 1) return arguments.iterations;
  return ((arguments.iterations + in_pass - 1) / in_pass + 1) * in_pass;
}

Result<traces::JobTrace> record(const SynthArguments& arguments, const synth::ParallelPlan& plan,
                                const synth::SynthesisedJob& job) {
  synth::RecordSetup setup;
  setup.iterations = recorded_iterations(arguments, job);
  setup.world_size = job.world_size;
  setup.provenance.source = arguments.names.model + ", " + arguments.plan;
  setup.provenance.tool = "bubblesim synth";
  setup.provenance.note = fmt::format("cluster {}; each rank stands for {}",
                                      plan.request.cluster.name, job.fold);
  return synth::record_trace(job.program, plan.request.gpu, setup);
}

/// The settled iterations; where those of a program's pass differ, its last pass.
Result<traces::IterationChoice> measured_iterations(const traces::JobTrace& trace,
                                                    std::uint32_t in_pass) {
  if (in_pass <= 1) return traces::IterationChoice{};
  BUBBLESIM_ASSIGN_OR_RETURN(const traces::JobPass pass, traces::find_job_pass(trace));
  const auto& recorded = pass.ranks.front().recorded;
  return traces::IterationChoice{traces::IterationChoice::Kind::kRange,
                                 recorded[recorded.size() - in_pass].number,
                                 recorded.back().number};
}

Result<void> measure_bubbles(const traces::JobTrace& trace, SynthOutcome& outcome) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const traces::IterationChoice choice,
      measured_iterations(trace, outcome.job.program.ranks.front().iterations));
  BUBBLESIM_ASSIGN_OR_RETURN(const traces::JobPass pass, traces::find_job_pass(trace, choice));
  outcome.bubbles = traces::inspect_job(trace, pass);
  outcome.measured = choice;
  return {};
}

Result<void> write_outputs(const SynthArguments& arguments, const SynthOutcome& outcome,
                           const std::optional<traces::JobTrace>& trace) {
  if (!arguments.output.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(make_folder_of(arguments.output));
    BUBBLESIM_RETURN_IF_ERROR(traces::format::write_job(arguments.output, *trace));
  }
  if (!arguments.json.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(make_folder_of(arguments.json));
    BUBBLESIM_RETURN_IF_ERROR(write_whole_file(arguments.json, synth_json(outcome)));
  }
  if (arguments.csv_schedule.empty()) return {};
  BUBBLESIM_RETURN_IF_ERROR(make_folder_of(arguments.csv_schedule));
  return write_whole_file(arguments.csv_schedule,
                    pipeline::write_csv_steps(outcome.plan.schedule, outcome.plan.graph));
}

ExitCode run_job(const SynthArguments& arguments, const synth::ParallelPlan& plan) {
  const synth::SynthesisedJob job = synth::synthesise(plan);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto alone, synth::time_alone(job.program, plan.request.gpu));
  SynthOutcome outcome{plan, job, alone, std::nullopt, {}};
  std::optional<traces::JobTrace> trace;
  if (!arguments.output.empty() ||
      alone.kernels * recorded_iterations(arguments, job) <= kMostRecorded) {
    BUBBLESIM_ASSIGN_OR_RETURN(auto recorded, record(arguments, plan, job));
    trace = std::move(recorded);
    BUBBLESIM_RETURN_IF_ERROR(measure_bubbles(*trace, outcome));
  }
  BUBBLESIM_RETURN_IF_ERROR(write_outputs(arguments, outcome, trace));
  std::fputs(synth_text(outcome).c_str(), stdout);
  if (!arguments.output.empty()) fmt::print("wrote {}\n", arguments.output);
  return job.program.counters.has_error() ? kExitUntrusted : kExitOk;
}

ExitCode run_synth(const SynthArguments& arguments, const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto names, names_of(arguments));
  BUBBLESIM_ASSIGN_OR_RETURN(auto request, synth::find_job(names, context.config_folder));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto plan, synth::plan_job(std::move(request)));
  return run_job(arguments, plan);
}

void add_outputs(CLI::App& command, SynthArguments& arguments) {
  command.add_option("-o,--output", arguments.output, "Write the job as a trace: a .btr file");
  command.add_option("--iterations", arguments.iterations, "Iterations that the trace holds")
      ->check(CLI::Range(1U, 100'000U))
      ->capture_default_str();
  command.add_option("--json", arguments.json, "Write what is printed as JSON");
  command.add_option("--csv-schedule", arguments.csv_schedule,
                     "Write the pipeline's schedule as CSV");
}

}  // namespace

void add_synth_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<SynthArguments>();
  CLI::App* command = parser.add_subcommand(
      "synth",
      "Makes a training job from a model, a parallel plan and a cluster: its iteration time, "
      "bubbles and memory, and its trace.\n\n"
      "Examples:\n"
      "  bubblesim synth --model roberta-large --plan ddp-4 --cluster a100-40gb-4 -o synth.btr\n"
      "  bubblesim synth --model gpt2-large --plan pp-4-1f1b --cluster a100-40gb-4 "
      "--set schedule=gpipe --set recompute=full\n"
      "  bubblesim synth --model gpt-175b --plan megatron-t8-p8 --cluster selene --nodes 8");
  command
      ->add_option("--model", arguments->names.model, "A file of configs/models, or a path")
      ->required();
  command->add_option("--plan", arguments->plan, "A file of configs/plans, or a path")->required();
  command
      ->add_option("--cluster", arguments->names.cluster, "A file of configs/clusters, or a path")
      ->required();
  command->add_option("--nodes", arguments->names.nodes, "Nodes of it (default: the file's)")
      ->check(CLI::Range(1U, 65'536U));
  command->add_option("--device", arguments->names.device,
                      "A file of configs/devices (default: the cluster's)");
  command->add_option("--software", arguments->names.software,
                      "A file of configs/software (default: the plan's)");
  command->add_option("--set", arguments->changes,
                      "Another value for a key of the plan: data=8, /gradients/bucket=50MiB");
  command->add_option("--fold", arguments->fold,
                      "Ranks that are not simulated because others behave alike: all but one a "
                      "pipeline stage, data replicas, none (default: the plan's)")
      ->check(CLI::IsMember(folding_words()));
  add_outputs(*command, *arguments);
  context.outputs.writes(*command, "--output");
  context.outputs.writes(*command, "--json");
  context.outputs.writes(*command, "--csv-schedule");
  command->callback([arguments, &context] {
    context.exit_code = reported(run_synth(*arguments, context));
  });
}

}  // namespace bubblesim::app
