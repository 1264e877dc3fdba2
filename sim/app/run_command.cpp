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
#include "sim/base/units.hpp"
#include "sim/observe/report.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/timeline_export.hpp"
#include "sim/workload/replay.hpp"
#include "traces/export/chrome_trace.hpp"

namespace bubblesim::app {
namespace {

// Of --usage. NVML's own sample periods are between 1/6 s and 1 s (nvml.h, nvmlUtilization_t).
constexpr const char* kUsageInterval = "100ms";

struct RunArguments {
  std::string config;
  QuickRun quick;
  std::string synth_model;  ///< of the quick run's job, in place of traces
  std::string plan;
  std::string cluster;
  std::string mode = "both";
  std::vector<std::string> policy_libraries;
  std::string out;
  std::string timeline;
  std::string timeline_policy;
  std::string duration = "120s";
  std::string warmup = "60s";
  std::string timeline_window = "1s";
  std::string usage;
  std::string usage_interval;  ///< empty: not given
  Duration usage_length{};     ///< what it says
  std::size_t threads = 0;
  bool json = false;
  bool csv = false;
};

/// What a run printed and wrote, report by report.
struct RunOutputs {
  std::string table;
  std::string csv;
  std::string usage;
  std::vector<std::string> json;
  bool untrusted = false;
};

// The one asked for; else SpecInF, if it is there; else the last.
std::string timeline_policy(const RunArguments& arguments, const run::RunConfig& config) {
  if (!arguments.timeline_policy.empty()) return arguments.timeline_policy;
  for (const run::PolicyChoice& choice : config.policies) {
    if (choice.name == "specinf") return choice.name;
  }
  return config.policies.back().name;
}

// Both modes of a quick run have a timeline: the online one's file says so in its name.
std::string timeline_path(const RunArguments& arguments, const run::RunConfig& config) {
  const std::filesystem::path path(arguments.timeline);
  if (arguments.config.empty() && arguments.mode == "both" && config.name == "online") {
    return (path.parent_path() / (path.stem().string() + "-online" + path.extension().string()))
        .string();
  }
  return path.string();
}

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

Result<void> read_duration(const char* option, const std::string& text, Duration& into) {
  const auto read = parse_duration(text);
  if (!read) return fail(option, {}, read.error().message);
  if (*read < Duration{}) return fail(option, {}, "found \"" + text + "\", expected 0s or more");
  into = *read;
  return {};
}

CheckedResult<void> run_loaded(const run::LoadedRun& loaded, const RunArguments& arguments,
                               const AppContext& context, ProgressLine& progress,
                               RunOutputs& outputs) {
  run::RunOptions options;
  options.threads = arguments.threads;
  options.progress = progress.callback();
  Duration window{};
  if (auto read = read_duration("--timeline-window", arguments.timeline_window, window); !read) {
    return one(read.error());
  }
  const auto index = timeline_index(arguments, loaded.config);
  if (!index) return tl::unexpected<Errors>(index.error());
  observe::TimelineRecorder timeline;
  timeline.set_window(kSimStart + loaded.config.warmup,
                      kSimStart + loaded.config.warmup + window);
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

CheckedResult<void> run_config_file(const RunArguments& arguments, const AppContext& context,
                                    ProgressLine& progress, RunOutputs& outputs) {
  auto config = run::read_run_config(arguments.config, context.policies);
  if (!config) return tl::unexpected<Errors>(config.error());
  if (!arguments.quick.policies.empty()) {
    auto chosen = choose_policies(arguments.quick.policies, context.policies);
    if (!chosen) return tl::unexpected<Errors>(chosen.error());
    config->policies = std::move(*chosen);
  }
  auto loaded = run::load_run(*config, context.device_folder(), progress.callback());
  if (!loaded) return tl::unexpected<Errors>(loaded.error());
  return run_loaded(*loaded, arguments, context, progress, outputs);
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
  for (const auto mode : {observe::FillerMode::kOffline, observe::FillerMode::kOnline}) {
    if (arguments.mode != "both" && arguments.mode != observe::filler_mode_name(mode)) continue;
    auto chosen = quick_config(arguments.quick, mode, *rate, loaded->training->ranks.size(),
                               context.policies);
    if (!chosen) return tl::unexpected<Errors>(chosen.error());
    loaded->config = std::move(*chosen);
    auto done = run_loaded(*loaded, arguments, context, progress, outputs);
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

Result<void> read_times(RunArguments& arguments) {
  QuickRun& quick = arguments.quick;
  BUBBLESIM_RETURN_IF_ERROR(read_duration("--duration", arguments.duration, quick.duration));
  BUBBLESIM_RETURN_IF_ERROR(read_duration("--warmup", arguments.warmup, quick.warmup));
  if (quick.warmup >= quick.duration) {
    return fail("--warmup", {}, "found " + arguments.warmup + ", expected less than --duration (" +
                                    arguments.duration + ")");
  }
  return {};
}

// A length alone asks for the file of --out; a file alone is cut as finely as the default.
Result<void> read_usage(RunArguments& arguments) {
  const std::string& interval = arguments.usage_interval;
  if (!interval.empty() && arguments.usage.empty()) {
    if (arguments.out.empty()) {
      return fail("--usage-interval", {}, "expected --usage FILE or --out DIR with it");
    }
    arguments.usage = arguments.out + "/usage.csv";
  }
  if (arguments.usage.empty()) return {};
  const std::string text = interval.empty() ? kUsageInterval : interval;
  BUBBLESIM_RETURN_IF_ERROR(read_duration("--usage-interval", text, arguments.usage_length));
  if (arguments.usage_length > Duration{}) return {};
  return fail("--usage-interval", {}, "found \"" + text + "\", expected more than 0s");
}

// Which of the three forms was asked for: a config, traces, a synthesised job.
Result<void> read_job(RunArguments& arguments) {
  QuickRun& quick = arguments.quick;
  const bool synth = !arguments.synth_model.empty();
  const bool job = synth || !quick.training.empty();
  if ((job || !quick.filler.empty()) == !arguments.config.empty()) {
    return fail("run", {}, "expected either CONFIG, or --training and --filler");
  }
  if (!arguments.config.empty()) return {};
  if (!job || quick.filler.empty()) {
    return fail("run", {}, "expected both --training (or --synth-model) and --filler");
  }
  if (!synth) return {};
  quick.synth.emplace();
  quick.synth->model = arguments.synth_model;
  quick.synth->plan = arguments.plan;
  quick.synth->cluster = arguments.cluster;
  return {};
}

int run_run(RunArguments arguments, AppContext& context) {
  if (auto asked = read_job(arguments); !asked) return report_fault(asked.error());
  if (auto loaded = load_policy_libraries(arguments.policy_libraries, context); !loaded) {
    return report_faults(loaded.error());
  }
  const bool quick = arguments.config.empty();
  if (auto read = read_times(arguments); !read) return report_fault(read.error());
  if (auto read = read_usage(arguments); !read) return report_fault(read.error());
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

void add_job_options(CLI::App& command, RunArguments& arguments) {
  auto* training = command.add_option("--training", arguments.quick.training,
                                      "Traces of the training job: files or a folder");
  auto* model = command
                    .add_option("--synth-model", arguments.synth_model,
                                "In place of traces: a model to train (bubblesim models)")
                    ->excludes(training);
  auto* plan = command.add_option("--plan", arguments.plan,
                                  "With --synth-model: how (bubblesim plans)");
  auto* cluster = command.add_option("--cluster", arguments.cluster,
                                     "With --synth-model: on what (bubblesim clusters)");
  model->needs(plan)->needs(cluster);
  plan->needs(model);
  cluster->needs(model);
}

void add_usage_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("--usage", arguments.usage,
                     "Write how each GPU is used over time under each policy, as CSV: busy as NVML "
                     "shows it, SM shares, memory (sim/observe/OUTPUTS.md, Usage over time)");
  command.add_option("--usage-interval", arguments.usage_interval,
                     std::string("Length of its intervals, such as 1s (default: ") +
                         kUsageInterval + ")");
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
      "  bubblesim run configs/runs/example.json --usage out/usage.csv --usage-interval 200ms");
  command->add_option("CONFIG", arguments->config, "Run config (JSON; configs/README.md)");
  add_job_options(*command, *arguments);
  command->add_option("--filler", arguments->quick.filler,
                      "Trace of one pass of the inference service");
  command->add_option("--policy", arguments->quick.policies,
                      "Policies to compare, comma-separated (default: the config's, else all)");
  add_policy_library_option(*command, arguments->policy_libraries);
  command->add_option("--device", arguments->quick.device,
                      "Device to simulate, with --training (default: the one recorded)");
  command->add_option("--mode", arguments->mode, "With --training: the filler's mode")
      ->check(CLI::IsMember({"offline", "online", "both"}))
      ->capture_default_str();
  command->add_option("--load", arguments->quick.load,
                      "With --training, online: offered load, 1 is all that a GPU of the "
                      "service's own can serve")
      ->check(CLI::Range(0.001, 10.0))
      ->capture_default_str();
  command->add_option("--duration", arguments->duration,
                      "With --training: simulated time, such as 60s")
      ->capture_default_str();
  command->add_option("--warmup", arguments->warmup,
                      "With --training: simulated time before anything is measured; TGS needs "
                      "up to 50s to profile training")
      ->capture_default_str();
  command->add_option("--seed", arguments->quick.seed, "With --training: of arrivals and jitter")
      ->capture_default_str();
  command->add_option("--out", arguments->out,
                      "Folder for table.txt, results.json, results.csv, timeline.json and, with "
                      "--usage-interval, usage.csv");
  command->add_option("--timeline", arguments->timeline,
                      "Write a Chrome trace of one policy's run, for https://ui.perfetto.dev");
  command->add_option("--timeline-policy", arguments->timeline_policy,
                      "Whose timeline (default: specinf's, else the last policy's)");
  command->add_option("--timeline-window", arguments->timeline_window,
                      "How much of the run the timeline shows, from the end of the warm-up on")
      ->capture_default_str();
  add_usage_options(*command, *arguments);
  command->add_option("--threads", arguments->threads,
                      "Simulations at once; results do not depend on it (default: all cores)");
  auto* json = command->add_flag("--json", arguments->json, "Print JSON instead of the table");
  command->add_flag("--csv", arguments->csv, "Print CSV instead of the table")->excludes(json);
  command->callback([arguments, &context] { context.exit_code = run_run(*arguments, context); });
}

}  // namespace bubblesim::app
