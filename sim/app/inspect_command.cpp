// bubblesim inspect: what is in a trace, and how well it replays.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "sim/app/app.hpp"
#include "sim/app/replay_text.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "sim/workload/what_if.hpp"
#include "traces/inspect/render_json.hpp"
#include "traces/inspect/render_text.hpp"
#include "traces/inspect/timeline_svg.hpp"

namespace bubblesim::app {
namespace {

struct InspectArguments {
  std::vector<std::string> paths;
  std::string plot;
  std::vector<std::string> what_ifs;
  bool json = false;
  bool replay = false;
};

// The job as recorded, then with each change by itself.
Result<ReplayComparison> run_replays(const run::LoadedTrace& trace,
                                     const hardware::GpuSpec& device,
                                     const std::vector<std::string>& what_ifs) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const workload::JobProgram job,
      workload::build_job_program(trace.job, device, {workload::Window::kWhole}));
  ReplayComparison comparison;
  comparison.counters = job.counters;
  BUBBLESIM_ASSIGN_OR_RETURN(comparison.unchanged, workload::replay_alone(job, device));
  for (const std::string& text : what_ifs) {
    BUBBLESIM_ASSIGN_OR_RETURN(const workload::WhatIf change, workload::parse_what_if(text));
    workload::JobProgram changed = job;
    workload::apply(change, changed);
    BUBBLESIM_ASSIGN_OR_RETURN(auto report, workload::replay_alone(changed, device));
    comparison.changes.push_back({text, std::move(report)});
  }
  return comparison;
}

int print_replay(const run::LoadedTrace& trace, const InspectArguments& arguments,
                 const AppContext& context) {
  CounterSet counters;
  auto device = run::device_for_replay(trace.job, context.device_folder(), counters);
  if (!device) return report_faults(device.error());
  auto comparison = run_replays(trace, *device, arguments.what_ifs);
  if (!comparison) return report_fault(comparison.error());
  comparison->counters.merge(counters);
  const std::string text =
      arguments.json ? replay_json(*comparison) : replay_text(*comparison);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

int run_inspect(const InspectArguments& arguments, const AppContext& context) {
  ProgressLine progress;
  auto trace = run::load_trace(arguments.paths, progress.callback());
  progress.clear();
  if (!trace) return report_fault(trace.error());
  if (!arguments.plot.empty()) {
    if (auto made = make_folder_of(arguments.plot); !made) return report_fault(made.error());
    const std::string picture = traces::render_timeline_svg(trace->job, {});
    if (auto written = write_file(arguments.plot, picture); !written) {
      return report_fault(written.error());
    }
  }
  if (arguments.replay || !arguments.what_ifs.empty()) {
    return print_replay(*trace, arguments, context);
  }
  const traces::JobInspection inspection = traces::inspect_job(trace->job);
  const std::string text =
      arguments.json ? traces::render_json(inspection) : traces::render_text(inspection);
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
      "  bubblesim inspect job.btr --what-if compute=2 --what-if link=0.5 --what-if host@3=0.8");
  command->add_option("PATHS", arguments->paths, "Traces of one job (.btr, .json, .json.gz), or "
                                                 "a folder of them")
      ->required();
  command->add_flag("--json", arguments->json, "Write JSON instead of text");
  command->add_option("--plot", arguments->plot, "Draw the timeline as SVG into this file");
  command->add_flag("--replay", arguments->replay,
                    "Replay the job alone and compare with the recorded iteration times");
  command->add_option("--what-if", arguments->what_ifs,
                      "Replay with something faster or slower: TARGET[@RANK]=SPEED, TARGET one of "
                      "kernels, compute, memory, kernel:TEXT, copies, link, host");
  command->callback(
      [arguments, &context] { context.exit_code = run_inspect(*arguments, context); });
}

}  // namespace bubblesim::app
