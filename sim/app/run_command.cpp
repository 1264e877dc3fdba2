// bubblesim run: a config, or a job and a service given directly, under every policy.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/app/shared/own_process.hpp"
#include "sim/app/shared/policy_options.hpp"
#include "sim/app/shared/run_arguments.hpp"
#include "sim/observe/report.hpp"
#include "sim/observe/summary.hpp"
#include "sim/report/view/run_view.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/timeline_export.hpp"
#include "sim/workload/replay.hpp"
#include "traces/export/chrome_trace.hpp"

namespace bubblesim::app {
namespace {

// While `bubblesim run` simulates: how far it is, on a terminal, and what Ctrl-C means.

/// From its construction on, the first interrupt asks the run to stop and the second ends the
/// program. It has the line of progress to itself. One at a time in a process.
class RunWatch {
 public:
  /// Watches a run in `modes` modes, each under all policies, whose calls last for `policy_bound`
  /// at most (policy_options.hpp).
  RunWatch(ProgressLine& line, std::size_t modes, Duration policy_bound);

  /// Before the run of the next mode; what the options hold lives in the watch.
  void begin_mode(const std::string& name, run::RunOptions& options);
  /// An interrupt has come.
  [[nodiscard]] bool stopped() const { return stop_; }

 private:
  void end_line();
  void look();
  [[nodiscard]] std::string text();

  ProgressLine& line_;
  const std::size_t modes_;
  std::mutex mutex_;
  std::size_t mode_ = 0;          ///< from 1; guarded by mutex_, as are the next two
  std::string name_;              ///< of the mode
  std::string doing_;
  std::int64_t before_ns_ = 0;    ///< of time_, at the mode's beginning
  std::int64_t all_before_ns_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  run::SimulatedTime time_;
  std::atomic<bool> stop_{false};
  StopSignals signals_;
  PolicyTimeout timeout_;
  Ticker ticker_;                 ///< last: it uses the rest
};

constexpr auto kWatchTick = std::chrono::milliseconds{100};
constexpr double kTooEarly = 0.02;

/// "43 %, about 1:20 left" of what was begun `elapsed` ago; nothing is said of the time before two
/// percent are done. `share` in [0, 1].
std::string progress_text(double share, Duration elapsed) {
  std::string text = fmt::format("{:.0f} %", std::floor(100 * std::clamp(share, 0.0, 1.0)));
  if (share < kTooEarly) return text;
  const auto seconds =
      static_cast<std::int64_t>(std::ceil(to_seconds(elapsed) * (1 - share) / share));
  return text + fmt::format(", about {}:{:02} left", seconds / 60, seconds % 60);
}

RunWatch::RunWatch(ProgressLine& line, std::size_t modes, Duration policy_bound)
    : line_(line), modes_(std::max<std::size_t>(1, modes)),
      timeout_(policy_bound, [this] { end_line(); }), ticker_(kWatchTick, [this] { look(); }) {}

void RunWatch::begin_mode(const std::string& name, run::RunOptions& options) {
  const std::scoped_lock lock(mutex_);
  ++mode_;
  name_ = name;
  before_ns_ = time_.done_ns;
  all_before_ns_ = time_.all_ns;
  options.time = &time_;
  options.stop = &stop_;
  options.when_stopped = run::WhenStopped::kKeepDone;
  options.progress = [this](const std::string& doing) {
    const std::scoped_lock told(mutex_);
    doing_ = doing;
  };
}

void RunWatch::end_line() {
  const std::scoped_lock lock(mutex_);
  line_.clear();
  stop_ = true;
}

// A mode counts as much as another; in it, simulated time does.
std::string RunWatch::text() {
  if (mode_ == 0) return {};
  // What parts of the job do alone is simulated before; it says little of how fast policies are.
  if (time_.all_ns == 0) begin_ = std::chrono::steady_clock::now();
  const double all = static_cast<double>(time_.all_ns - all_before_ns_);
  const double done = static_cast<double>(time_.done_ns - before_ns_);
  const double share = (static_cast<double>(mode_ - 1) + (all > 0 ? done / all : 0)) /
                       static_cast<double>(modes_);
  const auto elapsed =
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin_);
  return fmt::format("{}: {}: {}", name_, progress_text(share, elapsed), doing_);
}

void RunWatch::look() {
  const std::scoped_lock lock(mutex_);
  if (signals_.count() > 0 && !stop_) {
    stop_ = true;
    line_.clear();
    std::fputs("bubblesim: interrupted: keeps what is done; once more to end at once\n", stderr);
  }
  if (!stop_) line_.show(text());
}

/// What a run found, mode by mode.
struct RunOutputs {
  std::vector<observe::RunReport> reports;
  std::string usage;  ///< CSV, without its header
  struct Timeline {
    std::string path;
    std::unique_ptr<observe::TimelineRecorder> recorder;
    observe::TimelineWindow window;
  };
  std::vector<Timeline> timelines;  ///< written last, since each may be large
  report::TimelineView view;  ///< of runs with a folder
  bool stopped = false;  ///< by an interrupt: there may be less than was asked for
  std::string not_run;   ///< a mode of which nothing was done
};

CheckedResult<std::optional<std::size_t>> timeline_index(const RunArguments& arguments,
                                                         const run::RunConfig& config) {
  if (arguments.timeline.empty()) return std::optional<std::size_t>{};
  const std::string wanted = timeline_policy(arguments, config);
  for (std::size_t i = 0; i < config.policies.size(); ++i) {
    if (config.policies[i].name == wanted) return std::optional<std::size_t>{i};
  }
  return fail("--timeline-policy", {}, "found \"" + wanted + "\", which this run does not use");
}

CheckedResult<void> run_ranks(const run::LoadedRun& loaded, const RunArguments& arguments,
                              const AppContext& context, RunWatch& watch,
                              const run::SharedBaselines& baselines, RunOutputs& outputs) {
  run::RunOptions options;
  options.baselines = baselines;
  options.threads = arguments.threads;
  options.size = arguments.force ? run::Size::kAny : run::Size::kChecked;
  watch.begin_mode(loaded.config.name, options);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto index, timeline_index(arguments, loaded.config));
  const observe::TimelineWindow window{{}, arguments.timeline_length};
  auto timeline = std::make_unique<observe::TimelineRecorder>();
  timeline->set_window(window);
  if (!arguments.usage.empty()) options.usage_interval = arguments.usage_length;
  options.timeline_of = index;
  options.timeline = timeline.get();
  report::RunView view(loaded);
  if (!arguments.out.empty()) options.timelines = view.sink();
  BUBBLESIM_ASSIGN_OR_RETURN(auto report, run::run_policies(loaded, context.policies, options));
  if (!arguments.out.empty()) outputs.view.sections.push_back(view.section(report));
  if (index && report.interrupted.empty()) {
    report.counters.merge(timeline->counters());
    outputs.timelines.push_back(
        {timeline_path(arguments, loaded.config), std::move(timeline), window});
  }
  outputs.usage += observe::usage_rows(report);
  for (auto& policy : report.policies) policy.usage.clear();
  outputs.reports.push_back(std::move(report));
  return {};
}

CheckedResult<void> run_loaded(const run::LoadedRun& loaded, const RunArguments& arguments,
                               const AppContext& context, RunWatch& watch,
                               const run::SharedBaselines& baselines, RunOutputs& outputs) {
  if (!arguments.lone_rank) {
    return run_ranks(loaded, arguments, context, watch, baselines, outputs);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(auto lone, run::lone_rank(loaded, *arguments.lone_rank));
  return run_ranks(lone, arguments, context, watch, baselines, outputs);
}

/// --slo is for every server that requests arrive at.
Result<void> set_limits(const RunArguments& arguments, run::RunConfig& config) {
  if (arguments.slo.empty()) return {};
  BUBBLESIM_ASSIGN_OR_RETURN(const observe::ServiceLimits limits, read_limits(arguments.slo));
  bool servers = false;
  for (run::FillerConfig& filler : config.fillers) {
    const auto* made = std::get_if<synth::InferenceNames>(&filler.program);
    if (made == nullptr || !made->engine) continue;
    filler.limits = limits;
    servers = true;
  }
  if (servers) return {};
  return fail("--slo", {}, "no filler is a language-model server; expected one with \"engine\"");
}

CheckedResult<void> run_config_file(const RunArguments& arguments, const CLI::App& command,
                                    const AppContext& context, ProgressLine& progress,
                                    RunOutputs& outputs) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto config, run::read_run_config(arguments.config, context.policies));
  if (!arguments.quick.policies.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(config.policies,
                               choose_policies(arguments.quick.policies, context));
  }
  if (!arguments.quick.device.empty()) config.device = arguments.quick.device;
  BUBBLESIM_RETURN_IF_ERROR(override_config(arguments, command, config));
  BUBBLESIM_RETURN_IF_ERROR(set_limits(arguments, config));
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto loaded,
      run::load_run(config, context.device_folder(), progress.callback(), arguments.threads));
  progress.clear();
  RunWatch watch(progress, 1, arguments.policy_bound);
  auto done = run_loaded(loaded, arguments, context, watch, {}, outputs);
  outputs.stopped = watch.stopped();
  return done;
}

// Requests a second that the filler's program serves alone.
CheckedResult<double> alone_rate(const run::LoadedRun& loaded) {
  workload::JobProgram job;
  job.ranks.push_back(loaded.fillers.front()->program);
  BUBBLESIM_ASSIGN_OR_RETURN(auto replay, workload::replay_alone(job, loaded.device));
  const double seconds = to_seconds(replay.ranks.front().simulated_span);
  return seconds > 0 ? 1.0 / seconds : 0.0;
}

CheckedResult<void> run_quick(const RunArguments& arguments, const AppContext& context,
                              ProgressLine& progress, RunOutputs& outputs) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto config,
      quick_config(arguments.quick, observe::FillerMode::kOffline, 0, 0, context));
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto loaded,
      run::load_run(config, context.device_folder(), progress.callback(), arguments.threads));
  BUBBLESIM_ASSIGN_OR_RETURN(auto rate, alone_rate(loaded));
  progress.clear();
  RunWatch watch(progress, arguments.mode == "both" ? 2 : 1, arguments.policy_bound);
  run::BaselineCache cache;  // both modes have the job alone and its bubbles in common
  for (const auto mode : {observe::FillerMode::kOffline, observe::FillerMode::kOnline}) {
    if (arguments.mode != "both" && arguments.mode != observe::filler_mode_name(mode)) continue;
    BUBBLESIM_ASSIGN_OR_RETURN(
        loaded.config,
        quick_config(arguments.quick, mode, rate, loaded.training->ranks.size(), context));
    const run::SharedBaselines baselines{&cache, {"job", {observe::filler_mode_name(mode)}, "job"}};
    auto done = run_loaded(loaded, arguments, context, watch, baselines, outputs);
    outputs.stopped = watch.stopped();
    if (!done && outputs.stopped && !outputs.reports.empty()) {  // what modes before gave is kept
      outputs.not_run = loaded.config.name;
      break;
    }
    if (!done) return done;
  }
  return {};
}

std::string table_of(const RunArguments& arguments, const RunOutputs& outputs,
                     observe::Notes notes) {
  const auto columns = arguments.wide ? observe::Columns::kAll : observe::Columns::kFew;
  std::string text;
  for (const observe::RunReport& report : outputs.reports) {
    text += observe::report_table(report, columns) + '\n';
  }
  return text + observe::report_notes(outputs.reports, notes);
}

// The line below the table: what to type to see more of this run.
std::string next_step(const RunArguments& arguments, const AppContext& context) {
  if (!arguments.out.empty()) return "next: bubblesim view " + shell_word(arguments.out) + '\n';
  return "next: " + context.command_line + " --out out/run\n";
}

std::string csv_of(const RunOutputs& outputs) {
  std::string text = observe::csv_header();
  for (const observe::RunReport& report : outputs.reports) text += observe::csv_rows(report);
  return text;
}

std::string json_of(const RunOutputs& outputs) {
  if (outputs.reports.size() == 1) return observe::report_json(outputs.reports.front());
  std::string text = "[\n";
  for (const observe::RunReport& report : outputs.reports) {
    text += observe::report_json(report) + (&report < &outputs.reports.back() ? ",\n" : "");
  }
  return text + "]\n";
}

std::string title_of(const RunArguments& arguments) {
  if (!arguments.config.empty()) return arguments.config;
  const QuickRun& quick = arguments.quick;
  return (quick.training.empty() ? arguments.synth_model : quick.training.front()) + " beside " +
         quick.filler;
}

// Results first, then what is large. A file that cannot be written does not cost the others: the
// faults of all.
Errors write_outputs(const RunArguments& arguments, RunOutputs& outputs) {
  Errors faults;
  const auto write = [&](const std::string& path, const std::string& text) {
    if (const auto done = write_output(path, text); !done) faults.push_back(done.error());
  };
  if (!arguments.out.empty()) {
    const std::string folder = arguments.out + "/";
    write(folder + "results.json", json_of(outputs));
    write(folder + "results.csv", csv_of(outputs));
    write(folder + "table.txt", table_of(arguments, outputs, observe::Notes::kAll));
    std::string servers;  // a run without servers has no such file
    for (const auto& report : outputs.reports) servers += observe::servers_rows(report);
    if (!servers.empty()) write(folder + "servers.csv", observe::servers_header() + servers);
  }
  write(arguments.usage, observe::usage_header() + outputs.usage);
  if (!arguments.out.empty()) {
    outputs.view.title = title_of(arguments);
    write(arguments.out + '/' + report::kViewFileName, report::view_text(outputs.view));
  }
  for (const auto& [path, recorder, window] : outputs.timelines) {
    auto done = make_folder_of(path);
    if (done) {
      const auto chrome = run::timeline_to_chrome(*recorder, window);  // borrows from the recorder
      done = traces::write_chrome_trace_file(path, chrome).map([](const auto&) {});
    }
    if (!done) faults.push_back(done.error());
  }
  return faults;
}

// A config says of each of its fillers how it runs.
constexpr std::array kConfigPlaces{
    ConfigPlace{"--mode", "/fillers/.../mode"},
    ConfigPlace{"--load", "/fillers/.../arrivals"}};

ExitCode run_run(RunArguments& arguments, const CLI::App& command, AppContext& context) {
  BUBBLESIM_RETURN_IF_ERROR(read_job(arguments));
  BUBBLESIM_RETURN_IF_ERROR(refuse_beside_config(command, arguments, kConfigPlaces));
  const bool quick = arguments.config.empty();
  BUBBLESIM_RETURN_IF_ERROR(read_times(arguments));
  if (arguments.threads == 0) arguments.threads = std::thread::hardware_concurrency();
  if (!arguments.out.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(make_folder_of(arguments.out + "/table.txt"));
    if (arguments.timeline.empty()) arguments.timeline = arguments.out + "/timeline.json";
  }
  ProgressLine progress;
  RunOutputs outputs;
  const auto done = quick ? run_quick(arguments, context, progress, outputs)
                          : run_config_file(arguments, command, context, progress, outputs);
  progress.clear();
  if (!done) {
    report_faults(done.error());
    return outputs.stopped ? kExitInterrupted : kExitInputFault;
  }
  const auto notes = arguments.notices ? observe::Notes::kAll : observe::Notes::kFew;
  const std::string text = arguments.json  ? json_of(outputs)
                           : arguments.csv ? csv_of(outputs)
                                           : table_of(arguments, outputs, notes) +
                                                 next_step(arguments, context);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  const Errors unwritten = write_outputs(arguments, outputs);
  report_faults(unwritten);
  if (!outputs.not_run.empty()) {
    fmt::print(stderr, "bubblesim: interrupted: nothing was run {}\n", outputs.not_run);
  }
  if (outputs.stopped) return kExitInterrupted;
  if (!unwritten.empty()) return kExitInputFault;
  const bool bad = std::any_of(outputs.reports.begin(), outputs.reports.end(),
                               observe::has_error);
  return bad ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_run_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, run_run, "run",
      "Simulates a training job with fillers under each policy and prints the comparison.\n\n"
      "Examples:\n"
      "  bubblesim run traces/samples/training traces/samples/inference.json.gz --out out/demo\n"
      "  bubblesim run configs/runs/example.json\n"
      "  bubblesim run configs/runs/example.json --policy mps,specinf --csv\n"
      "  bubblesim run --synth-model roberta-large --plan ddp-4 --cluster a100-40gb-4 "
      "--filler traces/samples/inference.json.gz --policy exclusive,mps --duration 3s --warmup 1s\n"
      "  bubblesim run configs/runs/example.json --usage out/usage.csv --usage-interval 200ms\n"
      "  bubblesim run configs/runs/example.json --lone-rank 0");
  add_run_arguments(*command, *arguments, context);
  context.outputs.writes(*command, "--timeline", [](const std::string& value) {
    return std::vector<std::string>{value, online_timeline(value)};
  });
  context.outputs.writes(*command, "--usage");
  context.outputs.writes(*command, "--out", [](const std::string& folder) {
    std::vector<std::string> files;
    for (const char* name : {"table.txt", "results.json", "results.csv", "timeline.json",
                             "timeline-online.json", "view.json", "servers.csv", "usage.csv"}) {
      files.push_back(folder + "/" + name);
    }
    return files;
  });
}

}  // namespace bubblesim::app
