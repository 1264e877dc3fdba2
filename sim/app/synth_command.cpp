// bubblesim synth: a training job without a recording, from a model, a plan and a cluster.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/pipeline/csv.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/record_trace.hpp"
#include "sim/synth/synthesise.hpp"
#include "sim/text/text_table.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::app {
namespace {

// What `bubblesim synth` found, as text and as JSON.

struct SynthOutcome {
  const synth::ParallelPlan& plan;
  const synth::SynthesisedJob& job;
  synth::LoneIteration alone;
  std::optional<traces::JobInspection> bubbles;  ///< nothing: too large a job to record
  traces::IterationChoice measured;  ///< iterations of the trace whose bubbles these are
};

using synth::MemoryNeed;
using traces::BubbleCause;
using traces::WindowUse;

constexpr double kGiga = 1e9;

/// Rates that follow from the iteration's time.
struct Rates {
  double seconds = 0;
  double samples_per_s = 0;
  std::optional<double> tokens_per_s;   ///< transformers
  double tflops_per_gpu = 0;            ///< without recomputation
  double hardware_tflops_per_gpu = 0;   ///< with it
};

Rates rates_of(const SynthOutcome& outcome) {
  Rates out;
  out.seconds = to_seconds(outcome.alone.time);
  const double gpus = outcome.job.world_size;
  out.samples_per_s = outcome.job.samples / out.seconds;
  const auto& request = outcome.plan.request;
  if (const auto* net = std::get_if<model::TransformerSpec>(&request.model.network)) {
    const std::uint64_t tokens = request.plan.sequence.value_or(net->max_sequence);
    out.tokens_per_s = out.samples_per_s * static_cast<double>(tokens);
  }
  out.tflops_per_gpu = outcome.job.model_flops / out.seconds / gpus * 1e-12;
  out.hardware_tflops_per_gpu = outcome.job.flops / out.seconds / gpus * 1e-12;
  return out;
}

/// Ranks that stand next to each other and need the same memory.
struct RankRun {
  std::size_t first = 0;
  std::size_t last = 0;  ///< inclusive
};

std::vector<RankRun> runs_of(const std::vector<MemoryNeed>& memory) {
  std::vector<RankRun> runs;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const bool same = i > 0 && memory[i].total() == memory[i - 1].total() &&
                      memory[i].activations == memory[i - 1].activations;
    if (same) {
      runs.back().last = i;
    } else {
      runs.push_back({i, i});
    }
  }
  return runs;
}

double share(Duration part, Duration whole) {
  return whole.count() == 0 ? 0 : to_seconds(part) / to_seconds(whole);
}

std::string memory_text(const SynthOutcome& outcome) {
  TextTable table({"ranks", "parameters", "gradients", "optimiser", "activations", "working",
                   "peak", "free"},
                  {Align::kLeft}, "");
  const auto giga = [](double bytes) { return fmt::format("{:.2f}", bytes / kGiga); };
  const double all = static_cast<double>(outcome.plan.request.gpu.memory.value);
  for (const RankRun& run : runs_of(outcome.job.memory)) {
    const MemoryNeed& need = outcome.job.memory[run.first];
    const auto& ranks = outcome.job.program.ranks;
    const std::string name =
        run.first == run.last
            ? fmt::format("{}", ranks[run.first].rank)
            : fmt::format("{} ... {}", ranks[run.first].rank, ranks[run.last].rank);
    table.row({name, giga(need.fixed.parameters), giga(need.fixed.gradients),
               giga(need.fixed.optimizer), giga(need.activations), giga(need.working),
               giga(need.total()), giga(all - need.total())});
  }
  return fmt::format("\nmemory, GB of {:.1f}\n{}", all / kGiga, table.text());
}

std::string bubble_text(const SynthOutcome& outcome) {
  if (!outcome.bubbles) return "\nbubbles: not measured, the job is too large; -o records it\n";
  const WindowUse& use = outcome.bubbles->representative;
  std::string out = fmt::format("\nbubbles {:.1f} % of the time (no kernel but collectives runs):",
                                100 * share(use.bubble(), use.length));
  for (std::size_t i = 0; i < traces::kBubbleCauseCount; ++i) {
    if (use.by_cause[i] == Duration{}) continue;
    out += fmt::format(" {} {:.1f} %,", traces::bubble_cause_label(static_cast<BubbleCause>(i)),
                       100 * share(use.by_cause[i], use.length));
  }
  out.back() = '\n';
  if (outcome.bubbles->ranks.size() > 1) {
    out += "by rank, %:";
    for (const auto& rank : outcome.bubbles->ranks) {
      const WindowUse& own = rank.representative();
      out += fmt::format(" {:.1f}", 100 * share(own.bubble(), own.length));
    }
    out += "\n";
  }
  if (outcome.measured.kind == traces::IterationChoice::Kind::kRange) {
    out += fmt::format("of a pass whose iterations differ; the same of the trace: "
                       "\"use_iterations\": \"{}\"\n",
                       traces::iteration_choice_text(outcome.measured));
  }
  if (outcome.job.late_exchanges > 0) {
    out += fmt::format("of iterations of {}, which exchanges that nobody waits for need: in {} "
                       "they fall behind\n",
                       format_duration(outcome.bubbles->iteration_time),
                       format_duration(outcome.alone.time));
  }
  return out;
}

// Kernels of an iteration: iterations of a pass may differ.
std::uint64_t kernels_of(const SynthOutcome& outcome) {
  return outcome.alone.kernels / outcome.job.program.ranks.front().iterations;
}

std::uint64_t collectives_of(const SynthOutcome& outcome) {
  return outcome.job.program.collectives.size() / outcome.job.program.ranks.front().iterations;
}

std::string heading(const SynthOutcome& outcome) {
  const auto& request = outcome.plan.request;
  const synth::PlanSpec& plan = request.plan;
  const auto& job = outcome.job;
  return fmt::format(
      "{} on {} of {}, {}\n"
      "data {} x tensor {} x context {} x pipeline {} = {} GPUs; {}, {} micro-batches of {}; "
      "software {}\n"
      "simulated: {} of {} ranks (each stands for {}), {} kernels and {} collectives an "
      "iteration\n\n",
      request.model.name, job.world_size, request.cluster.name, request.gpu.name, plan.data,
      plan.tensor, plan.context, plan.pipeline, job.world_size, outcome.plan.schedule.name,
      plan.micro_batches(), plan.micro_batch, request.software.id, job.program.ranks.size(),
      job.world_size, job.fold, kernels_of(outcome), collectives_of(outcome));
}

Json memory_json(const SynthOutcome& outcome) {
  Json ranks = Json::array();
  const double all = static_cast<double>(outcome.plan.request.gpu.memory.value);
  for (std::size_t i = 0; i < outcome.job.memory.size(); ++i) {
    const MemoryNeed& need = outcome.job.memory[i];
    ranks.push_back({{"rank", outcome.job.program.ranks[i].rank},
                     {"parameter_bytes", need.fixed.parameters},
                     {"gradient_bytes", need.fixed.gradients},
                     {"optimizer_bytes", need.fixed.optimizer},
                     {"activation_bytes", need.activations},
                     {"working_bytes", need.working},
                     {"peak_bytes", need.total()},
                     {"free_bytes", all - need.total()}});
  }
  return ranks;
}

Json use_json(const WindowUse& use) {
  Json causes = Json::object();
  for (std::size_t i = 0; i < traces::kBubbleCauseCount; ++i) {
    causes[std::string(traces::bubble_cause_name(static_cast<BubbleCause>(i)))] =
        share(use.by_cause[i], use.length);
  }
  return {{"bubble_fraction", share(use.bubble(), use.length)},
          {"idle_fraction", share(use.idle(), use.length)},
          {"by_cause", std::move(causes)}};
}

Json bubbles_json(const SynthOutcome& outcome) {
  if (!outcome.bubbles) return nullptr;
  Json out = use_json(outcome.bubbles->representative);
  out["iteration_ns"] = to_ns(outcome.bubbles->iteration_time);
  out["ranks"] = list_json(outcome.bubbles->ranks, [](const auto& rank) {
    Json use = use_json(rank.representative());
    use["rank"] = rank.rank;
    return use;
  });
  return out;
}

Json plan_json(const SynthOutcome& outcome) {
  const synth::PlanSpec& plan = outcome.plan.plan();
  return {{"name", plan.name},
          {"data", plan.data},
          {"tensor", plan.tensor},
          {"context", plan.context},
          {"expert", plan.expert},
          {"pipeline", plan.pipeline},
          {"schedule", outcome.plan.schedule.name},
          {"global_batch", plan.global_batch},
          {"micro_batch", plan.micro_batch},
          {"micro_batches", plan.micro_batches()},
          {"software", outcome.plan.request.software.id}};
}

std::string synth_text(const SynthOutcome& outcome) {
  const Rates rates = rates_of(outcome);
  std::string out = heading(outcome);
  out += fmt::format("iteration       {}\n", format_duration(outcome.alone.time));
  out += fmt::format("TFLOP/s a GPU   {:.1f}", rates.tflops_per_gpu);
  if (outcome.job.flops > outcome.job.model_flops) {
    out += fmt::format("; {:.1f} with what is recomputed", rates.hardware_tflops_per_gpu);
  }
  out += fmt::format("\nsamples/s       {:.2f}\n", rates.samples_per_s);
  if (rates.tokens_per_s) out += fmt::format("tokens/s        {:.0f}\n", *rates.tokens_per_s);
  out += bubble_text(outcome) + memory_text(outcome);
  return out + counter_lines(outcome.job.program.counters);
}

std::string synth_json(const SynthOutcome& outcome) {
  const Rates rates = rates_of(outcome);
  const auto& request = outcome.plan.request;
  const Json document = {
      {"format", "bubblesim.synth/1"},
      {"model", request.model.name},
      {"cluster", request.cluster.name},
      {"device", request.gpu.name},
      {"plan", plan_json(outcome)},
      {"world_size", outcome.job.world_size},
      {"simulated_ranks", outcome.job.program.ranks.size()},
      {"fold", outcome.job.fold},
      {"kernels", kernels_of(outcome)},
      {"collectives", collectives_of(outcome)},
      {"iterations_a_pass", outcome.job.program.ranks.front().iterations},
      {"iteration_ns", to_ns(outcome.alone.time)},
      {"samples_per_s", rates.samples_per_s},
      {"tokens_per_s", rates.tokens_per_s ? Json(*rates.tokens_per_s) : Json(nullptr)},
      {"tflops_per_gpu", rates.tflops_per_gpu},
      {"hardware_tflops_per_gpu", rates.hardware_tflops_per_gpu},
      {"bubbles", bubbles_json(outcome)},
      {"memory_bytes", request.gpu.memory.value},
      {"ranks", memory_json(outcome)},
      {"events", outcome.alone.events},
      {"counters", counts_object(outcome.job.program.counters)}};
  return indented_text(document, 1) + "\n";
}

/// Operations of all simulated ranks up to which bubbles are measured without being asked for a
/// trace: a recording takes some 200 bytes of each.
constexpr std::uint64_t kMostRecorded = 2'000'000;

struct SynthArguments {
  synth::JobNames names;
  std::string plan;
  std::optional<std::string> device;
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
  if (arguments.device) names.device = *arguments.device;
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
  BUBBLESIM_RETURN_IF_ERROR(write_output(arguments.json, [&] { return synth_json(outcome); }));
  return write_output(arguments.csv_schedule, [&] {
    return pipeline::write_csv_steps(outcome.plan.schedule, outcome.plan.graph);
  });
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
  auto [command, arguments] = add_command(
      parser, context, run_synth, "synth",
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
  command->add_option("--device", arguments->device,
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
  context.outputs.writes(*command, {"--output", "--json", "--csv-schedule"});
}

}  // namespace bubblesim::app
