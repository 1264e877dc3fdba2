// bubblesim retarget: a captured data-parallel job with other replicas, interconnect or device.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/base/json.hpp"
#include "sim/base/output_file.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/synth/record_trace.hpp"
#include "sim/synth/retarget.hpp"
#include "sim/text/text_table.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::app {
namespace {

struct RetargetArguments {
  std::vector<std::string> paths;
  std::uint32_t replicas = 0;
  std::optional<std::string> cluster;
  std::optional<std::string> recorded_cluster;
  std::optional<std::string> device;
  std::optional<std::string> recorded_device;
  bool fold = false;
  std::string output;
};

/// What is printed and written as JSON.
struct RetargetOutcome {
  synth::Retargeted retargeted;
  std::size_t recorded_ranks = 0;
  Duration recorded{};   ///< mean iteration over ranks and iterations
  Duration simulated{};  ///< the recording, replayed
  Duration after{};
  Duration written{};    ///< as readers of the trace that is written find it
  CounterSet counters;   ///< of reading, building and re-targeting
};

Duration mean(const workload::ReplayReport& report,
              std::vector<Duration> workload::RankReplay::* times) {
  Duration sum{};
  std::int64_t count = 0;
  for (const workload::RankReplay& rank : report.ranks) {
    sum = std::accumulate((rank.*times).begin(), (rank.*times).end(), sum);
    count += static_cast<std::int64_t>((rank.*times).size());
  }
  return count == 0 ? sum : sum / count;
}

CheckedResult<synth::RooflineDevice> roofline_device(const std::string& name,
                                                     const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto gpu, hardware::find_gpu_spec(name, context.device_folder()));
  BUBBLESIM_ASSIGN_OR_RETURN(auto efficiency,
                             model::device_efficiency(gpu, context.config_folder));
  return synth::RooflineDevice{std::move(gpu), std::move(efficiency)};
}

CheckedResult<std::optional<hardware::ClusterSpec>> cluster_of(
    const std::optional<std::string>& name, const AppContext& context) {
  if (!name) return std::optional<hardware::ClusterSpec>{};
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto spec,
      hardware::find_cluster_spec(*name, context.config_folder + "/clusters"));
  return std::optional{std::move(spec)};
}

CheckedResult<synth::RetargetSpec> network_of(const RetargetArguments& arguments,
                                              const AppContext& context) {
  synth::RetargetSpec spec;
  spec.replicas = arguments.replicas;
  spec.copies = arguments.fold ? synth::Copies::kFolded : synth::Copies::kUnfolded;
  BUBBLESIM_ASSIGN_OR_RETURN(spec.cluster, cluster_of(arguments.cluster, context));
  BUBBLESIM_ASSIGN_OR_RETURN(spec.recorded_cluster,
                             cluster_of(arguments.recorded_cluster, context));
  return spec;
}

// Collectives without times are simulated when the trace is read: on the cluster of the recording
// if it is named, else on the one to run on, where they are then.
CheckedResult<run::LoadedTrace> load_recording(const RetargetArguments& arguments,
                                               synth::RetargetSpec& spec) {
  ProgressLine progress;
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto trace,
      run::load_trace(arguments.paths, progress.callback(), threads_of(0),
                      spec.recorded_cluster ? spec.recorded_cluster : spec.cluster));
  if (!spec.recorded_cluster && trace.collectives_simulated) {
    spec.recorded_cluster = std::exchange(spec.cluster, std::nullopt);
  }
  return trace;
}

Error unknown_recorded_device(const std::string& file, const std::string& name) {
  return {file, {},
          (name.empty() ? "names no device"
                        : "was recorded on \"" + name + "\", of which there is no device file") +
              "; what its kernels take on another one is the ratio of two known ones: expected "
              "--recorded-device, the id of its card or of one like it (bubblesim devices)"};
}

CheckedResult<synth::RetargetSpec> with_device(synth::RetargetSpec spec,
                                               const RetargetArguments& arguments,
                                               const traces::JobTrace& job,
                                               const AppContext& context) {
  if (!arguments.device) return spec;
  const std::string recorded =
      arguments.recorded_device.value_or(job.ranks.front().device.name);
  auto from = roofline_device(recorded, context);
  if (!from && !arguments.recorded_device) {
    return tl::unexpected<Errors>(
        Errors{unknown_recorded_device(arguments.paths.front(), recorded)});
  }
  if (!from) return tl::unexpected<Errors>(from.error());
  BUBBLESIM_ASSIGN_OR_RETURN(synth::RooflineDevice to,
                             roofline_device(*arguments.device, context));
  hardware::GpuSpec device = to.gpu;
  spec.device = {std::move(device), synth::kernel_ratio(*std::move(from), std::move(to))};
  return spec;
}

std::string outcome_text(const RetargetOutcome& outcome) {
  const double change = to_seconds(outcome.after) / to_seconds(outcome.simulated) - 1;
  std::string out = fmt::format("iteration: recorded {}, replayed {}, re-targeted {} ({:+.1f} %)\n",
                                format_duration(outcome.recorded),
                                format_duration(outcome.simulated), format_duration(outcome.after),
                                100 * change);
  if (outcome.written != outcome.after) {
    out += fmt::format("its trace: {} an iteration; hosts that run ahead take more than the first "
                       "one until\n  all are alike\n",
                       format_duration(outcome.written));
  }
  out += fmt::format("ranks: {} recorded, {} now\nextrapolated:\n", outcome.recorded_ranks,
                     outcome.retargeted.replicas);
  if (outcome.retargeted.extrapolated.empty()) out += "  nothing\n";
  for (const std::string& text : outcome.retargeted.extrapolated) out += "  - " + text + "\n";
  return out + counter_lines(outcome.counters);
}

std::string outcome_json(const RetargetOutcome& outcome) {
  const Json document = {{std::string(run::kRetargetReportKey), outcome.recorded_ranks},
                         {"ranks", outcome.retargeted.replicas},
                         {"recorded_iteration_ns", to_ns(outcome.recorded)},
                         {"replayed_iteration_ns", to_ns(outcome.simulated)},
                         {"retargeted_iteration_ns", to_ns(outcome.after)},
                         {"written_iteration_ns", to_ns(outcome.written)},
                         {"extrapolated", outcome.retargeted.extrapolated},
                         {"counters", counts_object(outcome.counters)}};
  return indented_text(document, 1) + "\n";
}

std::string figures_beside(const std::string& output) {
  return std::filesystem::path(output).replace_extension(".json").string();
}

Result<void> check_outputs(const RetargetArguments& arguments) {
  if (figures_beside(arguments.output) != arguments.output) return {};
  return fail(arguments.output, {}, "found the name of the figures' file; expected NAME.btr");
}

// Replays the job as it was and as it would be, and writes the latter as a trace.
Result<RetargetOutcome> retarget_and_write(const RetargetArguments& arguments,
                                           const run::LoadedTrace& trace,
                                           const synth::RetargetSpec& spec,
                                           const hardware::GpuSpec& recorded_device) {
  RetargetOutcome outcome;
  outcome.counters = trace.counters;
  BUBBLESIM_ASSIGN_OR_RETURN(
      workload::JobProgram job,
      workload::build_job_program(trace.job, recorded_device, {workload::Window::kIterations}));
  outcome.recorded_ranks = job.ranks.size();
  BUBBLESIM_ASSIGN_OR_RETURN(const auto before, workload::repeat_alone(job, recorded_device));
  outcome.recorded = mean(before, &workload::RankReplay::recorded);
  outcome.simulated = mean(before, &workload::RankReplay::simulated);
  BUBBLESIM_ASSIGN_OR_RETURN(outcome.retargeted, synth::retarget(std::move(job), spec));
  const workload::JobProgram& now = outcome.retargeted.job;
  outcome.counters.merge(now.counters);
  const hardware::GpuSpec& device = spec.device ? spec.device->device : recorded_device;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto after, workload::repeat_alone(now, device));
  outcome.after = mean(after, &workload::RankReplay::simulated);
  synth::RecordSetup setup;
  // Readers leave out the first iteration, which begins with nothing under way.
  setup.iterations = now.ranks.front().iterations + 1;
  setup.world_size = outcome.retargeted.replicas;
  setup.provenance.source = std::filesystem::path(arguments.paths.front()).filename().string();
  setup.provenance.tool = "bubblesim retarget";
  for (const std::string& text : outcome.retargeted.extrapolated) {
    setup.provenance.note += text + "; ";
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto written, synth::record_trace(now, device, setup));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const workload::JobProgram read,
      workload::build_job_program(written, device, {workload::Window::kIterations}));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto again, workload::repeat_alone(read, device));
  outcome.written = mean(again, &workload::RankReplay::simulated);
  BUBBLESIM_RETURN_IF_ERROR(make_folder_of(arguments.output));
  BUBBLESIM_RETURN_IF_ERROR(traces::format::write_job(arguments.output, written));
  BUBBLESIM_RETURN_IF_ERROR(
      write_whole_file(figures_beside(arguments.output), outcome_json(outcome)));
  return outcome;
}

ExitCode run_retarget(const RetargetArguments& arguments, const AppContext& context) {
  BUBBLESIM_RETURN_IF_ERROR(check_outputs(arguments));
  BUBBLESIM_ASSIGN_OR_RETURN(auto network, network_of(arguments, context));
  BUBBLESIM_ASSIGN_OR_RETURN(auto trace, load_recording(arguments, network));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto spec, with_device(std::move(network), arguments, trace.job, context));
  const auto recorded_device =
      arguments.recorded_device
          ? run::device_of(trace.job, arguments.recorded_device, context.device_folder())
          : run::device_for_replay(trace.job, context.device_folder(), trace.counters);
  if (!recorded_device) return tl::make_unexpected(trace.located(recorded_device.error()));
  const auto outcome = retarget_and_write(arguments, trace, spec, *recorded_device);
  if (!outcome) return tl::make_unexpected(trace.located(outcome.error()));
  fmt::print("{}", loss_lines(outcome->counters));
  fmt::print("{}wrote {}\n", outcome_text(*outcome), arguments.output);
  return outcome->counters.has_error() ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_retarget_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, run_retarget, "retarget",
      "Takes a captured data-parallel job to another number of replicas, another interconnect, "
      "another device; prints its iteration time and what is extrapolated, writes a trace.\n\n"
      "--replicas 16 --recorded-cluster dgx-a100-80gb makes 16 ranks of a job whose ranks all meet "
      "in every collective.\n\n"
      "Example:\n  bubblesim retarget job.btr --device h100 -o on-h100.btr");
  command->add_option("TRACES", arguments->paths, "The job's traces: files, or folders of them")
      ->required();
  command->add_option("--replicas", arguments->replicas,
                      "Ranks of the new job (default: as recorded)")
      ->check(CLI::Range(1U, 1U << 24U));
  command->add_option("--cluster", arguments->cluster,
                      "Cluster to run on: id of configs/clusters or a file (default: the recorded "
                      "one)");
  command->add_option("--recorded-cluster", arguments->recorded_cluster,
                      "Cluster of the recording; without it collective times are not calibrated");
  command->add_option("--device", arguments->device,
                      "Device to run on: id of configs/devices, a file, or a recorded name");
  command->add_option("--recorded-device", arguments->recorded_device,
                      "Device of the recording (default: the one that the trace names)");
  command->add_flag("--fold", arguments->fold,
                    "Do not simulate and write ranks that repeat recorded ones");
  command->add_option("-o,--output", arguments->output,
                      "The .btr file to write; a .json file with the figures goes beside it, which "
                      "is left out where their folder is read as a trace")
      ->required();
  context.outputs.writes(*command, "--output", [](const std::string& value) {
    return std::vector<std::string>{value, figures_beside(value)};
  });
}

}  // namespace bubblesim::app
