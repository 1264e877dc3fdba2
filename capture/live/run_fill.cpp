#include "capture/live/run_fill.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
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
// signal reaches all that it started.

class LiveJob {
 public:
  /// `line` is for /bin/sh. Once.
  [[nodiscard]] Result<void> start(const std::string& line, const Variables& environment,
                                   ChildSettings settings);

  [[nodiscard]] bool runs() const { return pid_ > 0 && !end_; }
  /// Whether it has ended just now. What it started may go on.
  bool has_just_ended();
  /// Signals all of the job's group; after the job's own end, those that it left.
  void signal(int number) const;

  [[nodiscard]] pid_t group() const { return pid_; }
  [[nodiscard]] const std::optional<ChildEnd>& end() const { return end_; }
  [[nodiscard]] Duration ran() const { return ran_; }  ///< zero while it runs

 private:
  pid_t pid_ = 0;
  std::chrono::steady_clock::time_point began_;
  std::optional<ChildEnd> end_;
  Duration ran_{};
};

Result<void> LiveJob::start(const std::string& line, const Variables& environment,
                            ChildSettings settings) {
  settings.group = ChildGroup::kOwn;
  began_ = std::chrono::steady_clock::now();
  const auto pid = start_child({"/bin/sh", "-c", line}, environment, settings);
  if (!pid) return tl::make_unexpected(pid.error().error);
  pid_ = *pid;
  return {};
}

bool LiveJob::has_just_ended() {
  if (!runs() || !(end_ = reap_child(pid_))) return false;
  ran_ = std::chrono::steady_clock::now() - began_;
  return true;
}

void LiveJob::signal(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kTraining = 0, kFiller = 1;
constexpr std::chrono::milliseconds kLook{200};  // for what no signal tells

/// One run: what it holds, in the order in which it must go.
class FillRun {
 public:
  explicit FillRun(const FillSetup& setup) : setup_(setup) {}
  ~FillRun();
  FillRun(const FillRun&) = delete;
  FillRun& operator=(const FillRun&) = delete;

  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<void> start_jobs();
  void watch();
  [[nodiscard]] FillReport report();

 private:
  void start_policy();
  [[nodiscard]] Result<void> make_host();
  [[nodiscard]] Result<void> start_mps();
  [[nodiscard]] Variables environment_of(std::uint32_t client) const;
  void await_signal();
  void pass_on(int signal);
  void look_at_policy();
  void training_ended();
  void stop_filler();
  void say(const std::string& text) const {
    if (setup_.say) setup_.say(text);
  }

  const FillSetup& setup_;
  BlockedSignals signals_;
  std::unique_ptr<LiveFolder> folder_;
  std::unique_ptr<MpsDaemon> mps_;
  std::unique_ptr<HostClock> clock_ = wall_clock();
  std::unique_ptr<ClockPart> part_;
  std::unique_ptr<PolicyHost> host_;
  std::atomic<bool> host_ended_{false};
  bool host_stopped_ = false;
  bool fault_said_ = false;
  std::unique_ptr<Crew> crew_;
  LiveJob training_, filler_;
  std::optional<Clock::time_point> kill_at_;
  FillReport report_;
};

FillRun::~FillRun() {
  // Only where something failed: jobs that were started are not left behind.
  if (training_.runs()) training_.signal(SIGTERM);
  if (filler_.runs()) filler_.signal(SIGKILL);
  if (host_ != nullptr && !host_stopped_) host_->stop();
}

Result<void> FillRun::prepare() {
  BUBBLESIM_RETURN_IF_ERROR(can_be_preloaded(setup_.library));
  BUBBLESIM_ASSIGN_OR_RETURN(folder_, LiveFolder::make(setup_.folder, 2));
  if (setup_.plan.sharing == policy::SharingMode::kMps) BUBBLESIM_RETURN_IF_ERROR(start_mps());
  return make_host();
}

Result<void> FillRun::start_mps() {
  MpsSettings settings;
  settings.folder = folder_->path();
  settings.environment = setup_.environment;
  settings.device = setup_.device;
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

Result<void> FillRun::make_host() {
  part_ = clock_->join(Turn::kControl);
  PolicyHostSetup host;
  host.spec = setup_.spec;
  host.policy = setup_.policy;
  host.sharing = setup_.plan.sharing;
  host.origin = clock_->now();
  host.one_gpu = setup_.one_gpu;
  const bool asks = setup_.plan.asks_training || setup_.ask_training;
  host.clients.push_back({setup_.clients[kTraining], asks ? GateMode::kAsk : GateMode::kTell, 0});
  host.clients.push_back({setup_.clients[kFiller], GateMode::kAsk, setup_.window});
  BUBBLESIM_ASSIGN_OR_RETURN(host_, PolicyHost::make(*clock_, std::move(host)));
  return {};
}

void FillRun::start_policy() {
  host_->set_origin(clock_->now());
  crew_ = std::make_unique<Crew>(*clock_);
  crew_->start(Turn::kPolicy, [this] {
    host_->run();
    host_ended_ = true;
  });
}

Variables FillRun::environment_of(std::uint32_t client) const {
  GatedJob job;
  job.client = client;
  job.gate = host_->gate_name();
  job.folder = folder_->path();
  job.library = setup_.library;
  job.completions = setup_.spec->needs.completions;
  job.device = setup_.device;
  if (mps_ != nullptr) job.mps_directory = mps_->pipe_directory();
  return gated_environment(setup_.environment, job, setup_.plan);
}

Result<void> FillRun::start_jobs() {
  int log = STDERR_FILENO;
  if (!setup_.fill_log.empty()) {
    log = ::open(setup_.fill_log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log < 0) return fail(setup_.fill_log, {}, std::string("cannot be written: ") +
                                                      std::strerror(errno));
  }
  start_policy();
  // A terminal's input would stop a group that is not the terminal's. The filler must not take
  // input nor mix into training's output.
  ChildSettings settings;
  settings.mask = signals_.previous_mask();
  if (::isatty(STDIN_FILENO) != 0) settings.input = kNothing;
  auto started = training_.start(setup_.train, environment_of(kTraining), settings);
  if (started) {
    if (!setup_.plan.warning.empty()) say(setup_.plan.warning);
    settings.input = kNothing;
    settings.output = log;
    settings.error = log;
    started = filler_.start(setup_.fill, environment_of(kFiller), settings);
  }
  if (log != STDERR_FILENO) ::close(log);
  return started;
}

void FillRun::pass_on(int signal) {
  report_.interrupted = true;
  if (training_.runs()) training_.signal(signal);
  if (filler_.runs()) filler_.signal(signal);
  if (!training_.runs()) stop_filler();
}

void FillRun::await_signal() {
  const sigset_t awaited = awaited_signals();
  const timespec time{0, std::chrono::nanoseconds(kLook).count()};
  const int signal = sigtimedwait(&awaited, nullptr, &time);
  if (signal > 0 && signal != SIGCHLD) pass_on(signal);
}

void FillRun::look_at_policy() {
  if (fault_said_ || !host_ended_ || host_stopped_) return;
  fault_said_ = true;
  say("the policy decides no more; both programs go on ungated");
}

void FillRun::stop_filler() {
  if (!filler_.runs() || kill_at_) return;
  report_.filler_stopped = true;
  kill_at_ = Clock::now() + setup_.grace;
  filler_.signal(SIGTERM);
}

void FillRun::training_ended() {
  // First: a filler that waits at the gate could not end in good order.
  host_->client_gone(ClientId{kTraining});
  host_->stop();
  host_stopped_ = true;
  const bool died = training_.end()->exit_code != 0 && !report_.interrupted;
  const FillerThen then = died ? setup_.after_death : setup_.after_end;
  if (!filler_.runs()) return;
  if (then == FillerThen::kStop) {
    stop_filler();
  } else {
    say("training ended with " + std::to_string(training_.end()->exit_code) +
        "; the filler goes on ungated, in process group " + std::to_string(filler_.group()));
  }
}

void FillRun::watch() {
  while (training_.runs() || filler_.runs()) {
    await_signal();
    if (filler_.has_just_ended()) {
      // What its shell left behind ends with it, if we ended it.
      if (report_.filler_stopped) filler_.signal(SIGKILL);
      if (!host_stopped_) host_->client_gone(ClientId{kFiller});
    }
    if (training_.has_just_ended()) training_ended();
    look_at_policy();
    if (filler_.runs() && kill_at_ && Clock::now() >= *kill_at_) {
      report_.filler_killed = true;
      filler_.signal(SIGKILL);
    }
  }
}

FillReport FillRun::report() {
  crew_->wait();
  const auto report_of = [&](const LiveJob& job, std::uint32_t client) {
    LiveTotals totals;
    const void* const counts = &folder_->counts(client);
    std::memcpy(static_cast<void*>(&totals), counts, sizeof(totals));
    return LiveJobReport{totals, job.end(), job.ran()};
  };
  report_.training = report_of(training_, kTraining);
  report_.filler = report_of(filler_, kFiller);
  report_.host = host_->counts();
  report_.counters = host_->counters();
  report_.fault = host_->fault();
  for (std::string& note : folder_->notes()) {
    if (!note.ends_with("is gated")) report_.notes.push_back(std::move(note));
  }
  if (mps_ != nullptr) {
    if (const auto ended = mps_->quit(); !ended) report_.notes.push_back(ended.error().text());
  }
  return std::move(report_);
}

}  // namespace

Result<FillReport> run_fill(const FillSetup& setup) {
  FillRun run(setup);
  BUBBLESIM_RETURN_IF_ERROR(run.prepare());
  BUBBLESIM_RETURN_IF_ERROR(run.start_jobs());
  run.watch();
  return run.report();
}

}  // namespace bubblesim::capture
