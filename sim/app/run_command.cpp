// bubblesim run: a config, or a job and a service given directly, under every policy.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "sim/app/app.hpp"
#include "sim/app/policy_libraries.hpp"
#include "sim/app/quick_config.hpp"
#include "sim/app/run_arguments.hpp"
#include "sim/base/units.hpp"
#include "sim/observe/report.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/timeline_export.hpp"
#include "sim/workload/replay.hpp"
#include "traces/export/chrome_trace.hpp"

namespace bubblesim::app {
namespace {

/// What a run printed and wrote, report by report.
struct RunOutputs {
  std::string table;
  std::string csv;
  std::string usage;
  std::vector<std::string> json;
  bool untrusted = false;
};

CheckedResult<std::optional<std::size_t>> timeline_index(const RunArguments& arguments,
                                                         const run::RunConfig& config) {
  if (arguments.timeline.empty()) return std::optional<std::size_t>{};
  const std::string wanted = timeline_policy(arguments, config);
  for (std::size_t i = 0; i < config.policies.size(); ++i) {
    if (config.policies[i].name == wanted) return std::optional<std::size_t>{i};
  }
  return tl::unexpected<Errors>(
      Errors{{"--timeline-policy", {}, "found \"" + wanted + "\", which this run does not use"}});
}

tl::unexpected<Errors> one(Error fault) { return tl::unexpected<Errors>(Errors{std::move(fault)}); }

CheckedResult<void> run_ranks(const run::LoadedRun& loaded, const RunArguments& arguments,
                              const AppContext& context, ProgressLine& progress,
                              const run::SharedBaselines& baselines, RunOutputs& outputs) {
  run::RunOptions options;
  options.baselines = baselines;
  options.threads = arguments.threads;
  options.progress = progress.callback();
  const auto index = timeline_index(arguments, loaded.config);
  if (!index) return tl::unexpected<Errors>(index.error());
  observe::TimelineRecorder timeline;
  timeline.set_window(kSimStart + loaded.config.warmup,
                      kSimStart + loaded.config.warmup + arguments.timeline_length);
  if (!arguments.usage.empty()) options.usage_interval = arguments.usage_length;
  options.timeline_of = *index;
  options.timeline = &timeline;
  auto report = run::run_policies(loaded, context.policies, options);
  progress.clear();
  if (!report) return one(report.error());
  if (*index) {
    const auto written = traces::write_chrome_trace_file(
        timeline_path(arguments, loaded.config), run::timeline_to_chrome(timeline));
    if (!written) return one(written.error());
    report->counters.merge(timeline.counters());
  }
  outputs.table += observe::report_table(*report) + "\n";
  outputs.csv += observe::csv_rows(*report);
  outputs.usage += observe::usage_rows(*report);
  outputs.json.push_back(observe::report_json(*report));
  for (const auto& result : report->policies) {
    outputs.untrusted = outputs.untrusted || result.counters.has_error();
  }
  outputs.untrusted = outputs.untrusted || report->counters.has_error();
  return {};
}

CheckedResult<void> run_loaded(const run::LoadedRun& loaded, const RunArguments& arguments,
                               const AppContext& context, ProgressLine& progress,
                               const run::SharedBaselines& baselines, RunOutputs& outputs) {
  if (!arguments.lone_rank) {
    return run_ranks(loaded, arguments, context, progress, baselines, outputs);
  }
  auto lone = run::lone_rank(loaded, *arguments.lone_rank);
  if (!lone) return one(lone.error());
  return run_ranks(*lone, arguments, context, progress, baselines, outputs);
}

CheckedResult<void> run_config_file(const RunArguments& arguments, const AppContext& context,
                                    ProgressLine& progress, RunOutputs& outputs) {
  auto config = run::read_run_config(arguments.config, context.policies);
  if (!config) return tl::unexpected<Errors>(config.error());
  if (!arguments.quick.policies.empty()) {
    auto chosen = choose_policies(arguments.quick.policies, context.policies);
    if (!chosen) return tl::unexpected<Errors>(chosen.error());
    config->policies = std::move(*chosen);
  }
  if (!arguments.quick.device.empty()) config->device = arguments.quick.device;
  auto loaded = run::load_run(*config, context.device_folder(), progress.callback());
  if (!loaded) return tl::unexpected<Errors>(loaded.error());
  return run_loaded(*loaded, arguments, context, progress, {}, outputs);
}

// Requests a second that the filler's program serves alone.
CheckedResult<double> alone_rate(const run::LoadedRun& loaded) {
  workload::JobProgram job;
  job.ranks.push_back(*loaded.fillers.front());
  auto replay = workload::replay_alone(job, loaded.device);
  if (!replay) return one(replay.error());
  const double seconds = to_seconds(replay->ranks.front().simulated_span);
  return seconds > 0 ? 1.0 / seconds : 0.0;
}

CheckedResult<void> run_quick(const RunArguments& arguments, const AppContext& context,
                              ProgressLine& progress, RunOutputs& outputs) {
  auto config = quick_config(arguments.quick, observe::FillerMode::kOffline, 0, 0,
                             context.policies);
  if (!config) return tl::unexpected<Errors>(config.error());
  auto loaded = run::load_run(*config, context.device_folder(), progress.callback());
  if (!loaded) return tl::unexpected<Errors>(loaded.error());
  auto rate = alone_rate(*loaded);
  if (!rate) return tl::unexpected<Errors>(rate.error());
  run::BaselineCache cache;  // both modes have the job alone and its bubbles in common
  for (const auto mode : {observe::FillerMode::kOffline, observe::FillerMode::kOnline}) {
    if (arguments.mode != "both" && arguments.mode != observe::filler_mode_name(mode)) continue;
    auto chosen = quick_config(arguments.quick, mode, *rate, loaded->training->ranks.size(),
                               context.policies);
    if (!chosen) return tl::unexpected<Errors>(chosen.error());
    loaded->config = std::move(*chosen);
    const run::SharedBaselines baselines{&cache, {"job", {observe::filler_mode_name(mode)}, "job"}};
    auto done = run_loaded(*loaded, arguments, context, progress, baselines, outputs);
    if (!done) return done;
  }
  return {};
}

std::string json_of(const RunOutputs& outputs) {
  if (outputs.json.size() == 1) return outputs.json.front();
  std::string text = "[\n";
  for (std::size_t i = 0; i < outputs.json.size(); ++i) {
    text += outputs.json[i] + (i + 1 < outputs.json.size() ? ",\n" : "");
  }
  return text + "]\n";
}

Result<void> write_outputs(const RunArguments& arguments, const RunOutputs& outputs) {
  if (!arguments.usage.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(
        write_output(arguments.usage, observe::usage_header() + outputs.usage));
  }
  if (arguments.out.empty()) return {};
  BUBBLESIM_RETURN_IF_ERROR(write_file(arguments.out + "/table.txt", outputs.table));
  BUBBLESIM_RETURN_IF_ERROR(write_file(arguments.out + "/results.json", json_of(outputs)));
  return write_file(arguments.out + "/results.csv", observe::csv_header() + outputs.csv);
}

int run_run(RunArguments arguments, AppContext& context) {
  if (auto read = read_job(arguments); !read) return report_fault(read.error());
  if (auto loaded = load_policy_libraries(arguments.policy_libraries, context); !loaded) {
    return report_faults(loaded.error());
  }
  const bool quick = arguments.config.empty();
  if (auto read = read_times(arguments); !read) return report_fault(read.error());
  if (arguments.threads == 0) arguments.threads = std::thread::hardware_concurrency();
  if (!arguments.out.empty()) {
    if (auto made = make_folder_of(arguments.out + "/table.txt"); !made) {
      return report_fault(made.error());
    }
    if (arguments.timeline.empty()) arguments.timeline = arguments.out + "/timeline.json";
  }
  ProgressLine progress;
  RunOutputs outputs;
  const auto done = quick ? run_quick(arguments, context, progress, outputs)
                          : run_config_file(arguments, context, progress, outputs);
  progress.clear();
  if (!done) return report_faults(done.error());
  if (auto written = write_outputs(arguments, outputs); !written) {
    return report_fault(written.error());
  }
  if (arguments.json) {
    std::fputs(json_of(outputs).c_str(), stdout);
  } else if (arguments.csv) {
    std::fputs((observe::csv_header() + outputs.csv).c_str(), stdout);
  } else {
    std::fputs(outputs.table.c_str(), stdout);
  }
  return outputs.untrusted ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_run_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = parser.add_subcommand(
      "run",
      "Simulates a training job with fillers under each policy and prints the comparison.\n\n"
      "Examples:\n"
      "  bubblesim run configs/runs/example.json\n"
      "  bubblesim run configs/runs/example.json --policy mps,specinf --csv\n"
      "  bubblesim run --training traces/samples/training "
      "--filler traces/samples/inference.json.gz --out out/demo\n"
      "  bubblesim run --synth-model roberta-large --plan ddp-4 --cluster a100-40gb-4 "
      "--filler traces/samples/inference.json.gz --policy exclusive,mps --duration 3s --warmup 1s\n"
      "  bubblesim run configs/runs/example.json --usage out/usage.csv --usage-interval 200ms\n"
      "  bubblesim run configs/runs/example.json --lone-rank 0");
  add_run_arguments(*command, *arguments);
  command->callback([arguments, &context] { context.exit_code = run_run(*arguments, context); });
}

}  // namespace bubblesim::app
