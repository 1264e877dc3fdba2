#include "capture/live/run_fill.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/control/job_process.hpp"
#include "capture/live/job_variables.hpp"
#include "capture/live/live_folder.hpp"
#include "capture/substrate/mps_daemon.hpp"
#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {
namespace {

// One of the two programs while it runs: a shell that leads a process group of its own, so that a
// signal reaches all of the job's processes.

struct LiveJob {
  pid_t group = 0;                              ///< also the shell's; 0: not started
  std::chrono::steady_clock::time_point began;
  std::optional<ChildEnd> end;
  Duration ran{};                               ///< zero while it runs

  /// Starts `line` with /bin/sh. Call once.
  [[nodiscard]] Result<void> start(const std::string& line, const Variables& environment,
                                   ChildSettings settings) {
    settings.group = ChildGroup::kOwn;
    began = std::chrono::steady_clock::now();
    const auto pid = start_child({"/bin/sh", "-c", line}, environment, settings);
    if (!pid) return tl::make_unexpected(pid.error().error);
    group = *pid;
    return {};
  }
  [[nodiscard]] bool runs() const { return group > 0 && !end; }
  /// Whether it has ended just now. Processes that it started may go on.
  bool has_just_ended() {
    if (!runs() || !(end = reap_child(group))) return false;
    ran = std::chrono::steady_clock::now() - began;
    return true;
  }
  /// Signals all of the job's group; after the job's own end, the processes that it left.
  void signal(int number) const {
    if (group > 0) ::kill(-group, number);
  }
};

using Clock = std::chrono::steady_clock;

/// Joins the texts that are not empty.
template <class List, class TextOf>
std::string joined(const List& list, const char* between, TextOf text_of) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : between) + text_of(item);
  return text;
}

constexpr std::uint32_t kTraining = 0, kFiller = 1;
constexpr std::chrono::milliseconds kLook{200};  // for events without a signal

/// The parts of one GPU, in the order in which they must be destroyed.
struct GpuRun {
  GpuRun(const FillGpu& wanted, std::size_t number) : gpu(wanted), place(number) {}

  const FillGpu& gpu;
  const std::size_t place;
  std::unique_ptr<LiveFolder> folder;
  std::unique_ptr<PolicyHost> host;
  LiveJob filler;
  std::atomic<bool> host_ended{false};
  bool fault_said = false;
  std::optional<Clock::time_point> kill_at;
  FillGpuReport report;
};

/// One run: its parts, in the order in which they must be destroyed.
class FillRun {
 public:
  explicit FillRun(const FillSetup& setup) : setup_(setup) {}
  ~FillRun() {
    // Only after a failure: started jobs must not be left running.
    if (training_.runs()) training_.signal(SIGTERM);
    for (GpuRun& run : gpus_) {
      if (run.filler.runs()) run.filler.signal(SIGKILL);
      if (run.host != nullptr && !hosts_stopped_) run.host->stop();
    }
  }
  FillRun(const FillRun&) = delete;
  FillRun& operator=(const FillRun&) = delete;

  [[nodiscard]] Result<void> prepare() {
    BUBBLESIM_RETURN_IF_ERROR(can_be_preloaded(setup_.library));
    part_ = clock_->join(Turn::kControl);
    for (const FillGpu& gpu : setup_.gpus) {
      GpuRun& run = gpus_.emplace_back(gpu, gpus_.size());
      BUBBLESIM_ASSIGN_OR_RETURN(run.folder, LiveFolder::make(setup_.folder, 2));
      BUBBLESIM_RETURN_IF_ERROR(make_host(run));
    }
    if (setup_.gpus.front().plan.sharing != policy::SharingMode::kMps) return {};
    return start_mps();
  }
  [[nodiscard]] Result<void> start_jobs() {
    int log = STDERR_FILENO;
    if (!setup_.fill_log.empty()) {
      log = ::open(setup_.fill_log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
      if (log < 0) return fail(setup_.fill_log, {}, std::string("cannot be written: ") +
                                                        std::strerror(errno));
    }
    start_policies();
    // Terminal input would stop a process group that is not the terminal's. Fillers must neither
    // read input nor mix into training's output.
    ChildSettings settings;
    settings.mask = signals_.previous_mask();
    if (::isatty(STDIN_FILENO) != 0) settings.input = kNothing;
    auto started = training_.start(setup_.train, environment_of(nullptr), settings);
    settings.input = kNothing;
    settings.output = log;
    settings.error = log;
    if (started) started = start_fillers(settings);
    if (log != STDERR_FILENO) ::close(log);
    return started;
  }
  void watch() {
    while (training_.runs() || fillers_run()) {
      await_signal();
      for (GpuRun& run : gpus_) look_at(run);
      if (training_.has_just_ended()) training_ended();
    }
  }
  [[nodiscard]] FillReport report() {
    crew_->wait();
    for (GpuRun& run : gpus_) {
      FillGpuReport report = std::move(run.report);
      report.training = {run.folder->counts(kTraining), training_.end, training_.ran};
      report.filler = {run.folder->counts(kFiller), run.filler.end, run.filler.ran};
      report.host = run.host->counts();
      report.counters = run.host->counters();
      report.fault = run.host->fault();
      for (std::string& note : run.folder->notes()) {
        if (!note.ends_with("is gated")) report.notes.push_back(std::move(note));
      }
      report_.gpus.push_back(std::move(report));
    }
    if (mps_ != nullptr) {
      if (const auto ended = mps_->quit(); !ended) report_.notes.push_back(ended.error().text());
    }
    return std::move(report_);
  }

 private:
  void start_policies() {
    crew_ = std::make_unique<Crew>(*clock_);
    for (GpuRun& run : gpus_) {
      run.host->set_origin(clock_->now());
      crew_->start(Turn::kPolicy, [&run] {
        run.host->run();
        run.host_ended = true;
      });
    }
  }
  [[nodiscard]] Result<void> make_host(GpuRun& run) {
    PolicyHostSetup host;
    host.spec = setup_.spec;
    host.policy = run.gpu.policy;
    host.sharing = run.gpu.plan.sharing;
    host.origin = clock_->now();
    host.one_gpu = setup_.one_gpu;
    const bool asks = run.gpu.plan.asks_training || setup_.ask_training;
    host.clients.push_back({{}, asks ? GateMode::kAsk : GateMode::kTell, 0});
    host.clients.push_back({{}, GateMode::kAsk, setup_.window});
    BUBBLESIM_ASSIGN_OR_RETURN(run.host, PolicyHost::make(*clock_, std::move(host)));
    return {};
  }
  [[nodiscard]] Result<void> start_mps() {
    MpsSettings settings;
    settings.folder = gpus_.front().folder->path();
    settings.environment = setup_.environment;
    settings.device = joined(setup_.gpus, ",", [](const FillGpu& gpu) { return gpu.device; });
    auto daemon = MpsDaemon::start(settings);
    if (!daemon) {
      Error fault = daemon.error();
      fault.message += ". The policy " + setup_.spec->name +
                       " shares the GPU by MPS, and nothing was started";
      return tl::make_unexpected(std::move(fault));
    }
    mps_ = std::move(*daemon);
    for (const std::string& note : mps_->notes()) report_.notes.push_back(note);
    return {};
  }
  [[nodiscard]] bool fillers_run() const {
    return std::ranges::any_of(gpus_, [](const GpuRun& run) { return run.filler.runs(); });
  }
  /// Null: training's variables.
  [[nodiscard]] Variables environment_of(const GpuRun* filler) const {
    GatedJob job;
    const auto devices = [](const GpuRun& run) { return run.gpu.device; };
    const auto gates = [](const GpuRun& run) { return run.host->gate_name(); };
    const auto folders = [](const GpuRun& run) { return run.folder->path(); };
    job.client = filler == nullptr ? kTraining : kFiller;
    job.gates = filler == nullptr ? joined(gpus_, "\n", gates) : gates(*filler);
    job.folders = filler == nullptr ? joined(gpus_, "\n", folders) : folders(*filler);
    job.device = filler == nullptr ? joined(gpus_, ",", devices) : devices(*filler);
    job.library = setup_.library;
    job.completions = setup_.spec->needs.completions;
    if (mps_ != nullptr) job.mps_directory = mps_->pipe_directory();
    const GpuRun& planned = filler == nullptr ? gpus_.front() : *filler;
    job.place = planned.place;
    return gated_environment(setup_.environment, job, planned.gpu.plan);
  }
  [[nodiscard]] Result<void> start_fillers(ChildSettings settings) {
    const std::string& warning = setup_.gpus.front().plan.warning;
    if (!warning.empty()) say(warning);
    for (GpuRun& run : gpus_) {
      Variables variables = environment_of(&run);
      variables[kEnvFiller] = std::to_string(run.place);
      BUBBLESIM_RETURN_IF_ERROR(run.filler.start(run.gpu.fill, variables, settings));
    }
    return {};
  }
  void await_signal() {
    const sigset_t awaited = awaited_signals();
    const timespec time{0, std::chrono::nanoseconds(kLook).count()};
    const int signal = sigtimedwait(&awaited, nullptr, &time);
    if (signal > 0 && signal != SIGCHLD) pass_on(signal);
  }
  void pass_on(int signal) {
    report_.interrupted = true;
    if (training_.runs()) training_.signal(signal);
    for (GpuRun& run : gpus_) {
      if (run.filler.runs()) run.filler.signal(signal);
      if (!training_.runs()) stop_filler(run);
    }
  }
  void look_at(GpuRun& run) {
    if (run.filler.has_just_ended()) {
      // If we ended the filler, the processes that its shell left are ended, too.
      if (run.report.filler_stopped) run.filler.signal(SIGKILL);
      if (!hosts_stopped_) run.host->client_gone(ClientId{kFiller});
    }
    if (run.host_ended && !hosts_stopped_ && !std::exchange(run.fault_said, true)) {
      say("the policy decides no more; the programs on its GPU go on ungated");
    }
    if (run.filler.runs() && run.kill_at && Clock::now() >= *run.kill_at) {
      run.report.filler_killed = true;
      run.filler.signal(SIGKILL);
    }
  }
  void training_ended() {
    const bool died = training_.end->exit_code != 0 && !report_.interrupted;
    const FillerThen then = died ? setup_.after_death : setup_.after_end;
    hosts_stopped_ = true;
    for (GpuRun& run : gpus_) {
      // First: a filler that waits at the gate could not end properly.
      run.host->client_gone(ClientId{kTraining});
      run.host->stop();
      if (!run.filler.runs()) continue;
      if (then == FillerThen::kStop) {
        stop_filler(run);
      } else {
        say("training ended with " + std::to_string(training_.end->exit_code) +
            "; the filler goes on ungated, in process group " + std::to_string(run.filler.group));
      }
    }
  }
  void stop_filler(GpuRun& run) {
    if (!run.filler.runs() || run.kill_at) return;
    run.report.filler_stopped = true;
    run.kill_at = Clock::now() + setup_.grace;
    run.filler.signal(SIGTERM);
  }
  void say(const std::string& text) const {
    if (setup_.say) setup_.say(text);
  }

  const FillSetup& setup_;
  BlockedSignals signals_;
  std::unique_ptr<HostClock> clock_ = wall_clock();
  std::unique_ptr<ClockPart> part_;
  std::deque<GpuRun> gpus_;
  std::unique_ptr<MpsDaemon> mps_;
  bool hosts_stopped_ = false;
  std::unique_ptr<Crew> crew_;
  LiveJob training_;
  FillReport report_;
};

}  // namespace

Result<FillReport> run_fill(const FillSetup& setup) {
  FillRun run(setup);
  BUBBLESIM_RETURN_IF_ERROR(run.prepare());
  BUBBLESIM_RETURN_IF_ERROR(run.start_jobs());
  run.watch();
  return run.report();
}

}  // namespace bubblesim::capture
