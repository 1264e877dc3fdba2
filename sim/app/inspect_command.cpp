// bubblesim inspect: what is in a trace, and how well it replays.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "sim/app/load_job.hpp"
#include "sim/app/replay_text.hpp"
#include "sim/base/json.hpp"
#include "sim/base/output_file.hpp"
#include "sim/report/view/trace_view.hpp"
#include "sim/report/view/view_picture.hpp"
#include "sim/workload/build_counters.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "sim/workload/sensitivity.hpp"
#include "sim/workload/what_if.hpp"
#include "traces/inspect/render_json.hpp"
#include "traces/inspect/render_sensitivities.hpp"
#include "traces/inspect/render_text.hpp"

namespace bubblesim::app {
namespace {

struct InspectArguments {
  JobArguments job;
  std::string plot;
  std::vector<std::string> what_ifs;
  std::string iterations = "settled";
  bool json = false;
  bool replay = false;
  bool sensitivities = false;
};

// Up to so many device operations, the five repetitions of the sensitivities take a second or two.
constexpr std::size_t kQuicklyReplayed = 100'000;

constexpr std::size_t kDrawnRanks = 16;

constexpr CounterSpec kNotReplayed{
    "inspect_not_replayed", Severity::kNotice,
    "jobs that could not be replayed: without sensitivities (--sensitivities says why)"};

std::size_t device_ops(const traces::JobTrace& job) {
  std::size_t count = 0;
  for (const traces::RankTrace& rank : job.ranks) count += rank.device_ops.size();
  return count;
}

// The whole recording once, for its span.
Result<workload::ReplayReport> replay_recording(const traces::JobTrace& trace,
                                                const hardware::GpuSpec& device) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const workload::JobProgram job,
      workload::build_job_program(trace, device, {workload::Window::kWhole, {}, threads_of(0)}));
  return workload::replay_alone(job, device);
}

// The iterations used, repeated as a run does; then with each change by itself.
Result<ReplayComparison> run_replays(const run::LoadedTrace& trace,
                                     const hardware::GpuSpec& device,
                                     const traces::IterationChoice& iterations,
                                     const std::vector<std::string>& what_ifs) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const workload::JobProgram job,
      workload::build_job_program(trace.job, device,
                                  {workload::Window::kIterations, iterations, threads_of(0)}));
  ReplayComparison comparison;
  comparison.counters = job.counters;
  comparison.iterations_recorded = job.iterations_recorded;
  comparison.iterations_used = job.iterations_used;
  comparison.iterations_text = job.iterations_text;
  BUBBLESIM_ASSIGN_OR_RETURN(comparison.unchanged, workload::repeat_alone(job, device));
  BUBBLESIM_ASSIGN_OR_RETURN(comparison.whole, replay_recording(trace.job, device));
  for (const std::string& text : what_ifs) {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto together, workload::parse_what_ifs(text));
    workload::JobProgram changed = job;
    for (const workload::WhatIf& change : together) {
      BUBBLESIM_RETURN_IF_ERROR(workload::check_concerns(change, text, job));
      workload::apply(change, changed);
    }
    BUBBLESIM_ASSIGN_OR_RETURN(auto report, workload::repeat_alone(changed, device));
    const std::string_view clamped = workload::kClampedSpans.name;
    comparison.changes.push_back(
        {text, std::move(report), changed.counters.count(clamped) - job.counters.count(clamped)});
  }
  return comparison;
}

ExitCode print_replay(const run::LoadedTrace& trace, const InspectArguments& arguments,
                      const traces::IterationChoice& iterations, const AppContext& context) {
  CounterSet counters;
  auto device = run::device_for_replay(trace.job, context.device_folder(), counters);
  if (!device) return tl::make_unexpected(trace.located(device.error()));
  auto comparison = run_replays(trace, *device, iterations, arguments.what_ifs);
  if (!comparison) return tl::make_unexpected(trace.located(comparison.error()));
  comparison->counters.merge(counters);
  comparison->counters.merge(trace.counters);
  const std::string text =
      arguments.json ? replay_json(*comparison) : replay_text(*comparison);
  std::fputs(text.c_str(), stdout);
  const bool trusted = meets_recording(*comparison) && !comparison->counters.has_error();
  return trusted ? kExitOk : kExitUntrusted;
}

enum class Sensitivities : std::uint8_t { kLeftOut, kFound };

// Of the iterations that a run repeats, as it repeats them: what explains their times, and what
// they depend on.
Result<void> add_program(const traces::JobTrace& trace, const traces::IterationChoice& iterations,
                         Sensitivities sensitivities, const AppContext& context,
                         traces::JobInspection& inspection) {
  CounterSet counters;
  auto device = run::device_for_replay(trace, context.device_folder(), counters);
  if (!device) return tl::make_unexpected(device.error().front());
  BUBBLESIM_ASSIGN_OR_RETURN(const workload::JobProgram job,
                             workload::build_job_program(
                                 trace, *device,
                                 {workload::Window::kIterations, iterations, threads_of(0)}));
  inspection.explained = job.explained;
  for (const CounterSpec& spec : {workload::kTimeUnexplained, workload::kDoubtful}) {
    inspection.counters.add(spec, job.counters.count(spec.name));
  }
  if (sensitivities == Sensitivities::kLeftOut) return {};
  BUBBLESIM_ASSIGN_OR_RETURN(inspection.sensitivities, workload::find_sensitivities(job, *device));
  return {};
}

std::string sensitivities_only(const traces::JobInspection& inspection, bool json) {
  if (!json) return traces::sensitivities_text(inspection).substr(1);
  Json document;
  document["format"] = "bubblesim.sensitivities/1";
  document["sensitivities"] = traces::sensitivities_json(inspection);
  return indented_text(document, 1) + "\n";
}

ExitCode run_inspect(const InspectArguments& arguments, const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto iterations,
                             traces::parse_iteration_choice(arguments.iterations));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto trace, load_job(arguments.job, context));
  if (!arguments.plot.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(make_folder_of(arguments.plot));
    BUBBLESIM_RETURN_IF_ERROR(write_whole_file(
        arguments.plot, report::trace_picture(report::trace_view(
                            trace.job, arguments.job.paths.front(), kDrawnRanks))));
  }
  if (arguments.replay || !arguments.what_ifs.empty()) {
    return print_replay(trace, arguments, iterations, context);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto pass, traces::find_job_pass(trace.job, iterations));
  traces::JobInspection inspection = traces::inspect_job(trace.job, pass);
  const bool quick = arguments.sensitivities || device_ops(trace.job) <= kQuicklyReplayed;
  const auto added =
      add_program(trace.job, iterations, quick ? Sensitivities::kFound : Sensitivities::kLeftOut,
                  context, inspection);
  if (!added && arguments.sensitivities) return tl::make_unexpected(added.error());
  if (!added) inspection.counters.add(kNotReplayed);
  const std::string text = arguments.sensitivities
                               ? sensitivities_only(inspection, arguments.json)
                           : arguments.json ? traces::render_json(inspection)
                                            : traces::render_text(inspection);
  std::fputs(text.c_str(), stdout);
  return inspection.counters.has_error() ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_inspect_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = parser.add_subcommand(
      "inspect",
      "Says what is in a trace: ranks, iterations, bubbles by cause, top kernels, data quality.\n\n"
      "Examples:\n"
      "  bubblesim inspect traces/samples/training\n"
      "  bubblesim inspect job.btr --plot job.svg --json > job.json\n"
      "  bubblesim inspect job.btr --replay\n"
      "  bubblesim inspect job.btr --sensitivities\n"
      "  bubblesim inspect job.btr --what-if compute=2 --what-if link=0.5 --what-if host@3=0.8");
  command->add_option("PATHS", arguments->job.paths, "Traces of one job (.btr, .json, .json.gz), "
                                                      "or a folder of them")
      ->required();
  add_cluster_option(*command, arguments->job);
  command->add_flag("--json", arguments->json, "Write JSON instead of text");
  command->add_option("--plot", arguments->plot,
                      "Draw the timeline of the first 16 ranks as SVG into this file");
  command->add_option("--use-iterations", arguments->iterations,
                      "Iterations that count: settled (default), all, a number, or FIRST-LAST");
  command->add_flag("--replay", arguments->replay,
                    "Repeat the iterations alone and compare with the recorded time of one");
  command->add_option("--what-if", arguments->what_ifs,
                      "Replay with something faster or slower: TARGET[@RANK]=SPEED, TARGET one of "
                      "kernels, compute, memory, kernel:TEXT, copies, link, host; several with "
                      "commas between them (kernels=2,host=2) change together");
  command->add_flag(
      "--sensitivities", arguments->sensitivities,
      "Only say what the iteration time depends on. The sensitivity to kernels, copies, link or "
      "host is 2 (1 - T'/T), T the replayed iteration, T' the same with that twice as fast: from 0 "
      "(nothing changes) to 1 (it halves), together at most 1. Without this option they are part "
      "of "
      "the text and the JSON of jobs of up to 100,000 device operations");
  context.outputs.writes(*command, "--plot");
  command->callback(
      [arguments, &context] { context.exit_code = reported(run_inspect(*arguments, context)); });
}

}  // namespace bubblesim::app
