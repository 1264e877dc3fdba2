// A run of a rig, from the start of its first process to its last record.
#include "capture/rig/rig.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "capture/replay/control_segment.hpp"
#include "capture/replay/job_files.hpp"
#include "capture/rig/worker_process.hpp"
#include "capture/substrate/mps_daemon.hpp"
#include "capture/substrate/process_environment.hpp"
#include "sim/base/check.hpp"

namespace bubblesim::capture {
namespace {

// How often the rig looks for processes that died; a process that ends well rings.
constexpr Duration kLook = std::chrono::milliseconds(20);
// Time before the common start, so that every thread waits for it.
constexpr Duration kRunUp = std::chrono::milliseconds(50);

// The machine's time within which a process must join the clock.
constexpr Duration kJoinPatience = std::chrono::seconds(30);
constexpr Duration kJoinLook = std::chrono::milliseconds(20);

constexpr CounterSpec kJobsDied{"rig_jobs_died", Severity::kError,
    "jobs whose process died, or was killed because it was stuck, before it had ended"};

constexpr CounterSpec kMpsNotQuit{"rig_mps_did_not_quit", Severity::kNotice,
    "runs after which the MPS daemon did not quit as told; what ran had ended before that"};

class RigRun {
 public:
  /// `clock`: the calling thread takes part in it.
  RigRun(const RigPlace& place, const RigSetup& setup, HostClock& clock)
      : place_(place), setup_(setup), clock_(clock), crew_(std::make_unique<Crew>(clock)) {}
  /// In every case: no process and no thread is left.
  ~RigRun() {
    watchdog_.reset();
    workers_.clear();
    if (host_) host_->stop();
    if (place_.fake != nullptr && !device_.empty()) place_.fake->stop();
    crew_->wait();
  }

  [[nodiscard]] Result<RigResult> run() {
    BUBBLESIM_RETURN_IF_ERROR(begin_fake());
    BUBBLESIM_RETURN_IF_ERROR(make_gate());
    BUBBLESIM_ASSIGN_OR_RETURN(board_, ControlBoard::create(clock_));
    BUBBLESIM_RETURN_IF_ERROR(write_plans());
    BUBBLESIM_RETURN_IF_ERROR(start_workers());
    BUBBLESIM_RETURN_IF_ERROR(await_ready());
    start_all();
    BUBBLESIM_RETURN_IF_ERROR(await_end());
    BUBBLESIM_RETURN_IF_ERROR(end_all());
    RigResult result;
    end_mps(result);
    BUBBLESIM_RETURN_IF_ERROR(collect(result));
    return result;
  }

 private:
  /// The process of one job, or of all of them.
  struct Worker {
    WorkerProcess process;
    std::vector<std::size_t> jobs;  ///< into RigSetup::jobs
    bool gone = false;              ///< its end was handled
    TurnHolder seen{};              ///< the turn when the watchdog last looked
  };

  Result<void> begin_fake() {
    if (place_.fake == nullptr) {
      device_ = "cuda:0";  // the only device that its environment shows to a worker
      return begin_mps();
    }
    BUBBLESIM_ASSIGN_OR_RETURN(device_, place_.fake->begin(clock_, setup_));
    crew_->start(Turn::kDevice, [fake = place_.fake] { fake->run(); });
    return {};
  }
  Result<void> begin_mps() {
    if (setup_.substrate != Substrate::kMps) return {};
    MpsSettings settings;
    settings.folder = place_.folder;
    settings.environment = place_.environment;
    settings.device = place_.gpu;
    BUBBLESIM_ASSIGN_OR_RETURN(mps_, MpsDaemon::start(settings));
    for (const std::string& note : mps_->notes()) say(note);
    return {};
  }
  Result<void> make_gate() {
    if (!setup_.host) return {};
    BUBBLESIM_ASSIGN_OR_RETURN(host_, PolicyHost::make(clock_, *setup_.host));
    return {};
  }
  Result<void> write_plans() {
    for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
      BUBBLESIM_RETURN_IF_ERROR(write_job_plan(plan_path(job), setup_.jobs[job]));
    }
    return {};
  }
  Result<void> start_workers() {
    std::vector<std::size_t> all;
    for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
      all.push_back(job);
      if (setup_.substrate != Substrate::kStreams) {
        BUBBLESIM_RETURN_IF_ERROR(start_worker({job}));
      }
    }
    if (setup_.substrate == Substrate::kStreams) BUBBLESIM_RETURN_IF_ERROR(start_worker(all));
    watch();
    return {};
  }
  Result<void> start_worker(std::vector<std::size_t> jobs) {
    std::vector<std::string> command{place_.worker, "--clock", clock_.address(), "--control",
                                     board_->name()};
    if (!place_.fits.empty()) {
      command.push_back("--fits");
      command.push_back(place_.fits);
    }
    for (const std::size_t job : jobs) {
      for (const std::string& word :
           {std::string("--job"), plan_path(job), std::string("--record"), record_path(job),
            std::string("--device"), device_}) {
        command.push_back(word);
      }
      if (host_) {
        command.push_back("--gate");
        command.push_back(host_->gate_name());
      }
    }
    if (place_.fake == nullptr && setup_.substrate == Substrate::kMps &&
        share_of(jobs.front()).sm_percentage < 100) {
      command.push_back("--part-of-gpu");
    }
    const std::uint32_t parts = clock_.parts_begun();
    const std::string said = place_.folder + "/worker" + std::to_string(workers_.size()) + ".txt";
    BUBBLESIM_ASSIGN_OR_RETURN(const Variables environment, environment_of(jobs.front()));
    BUBBLESIM_ASSIGN_OR_RETURN(WorkerProcess process,
                               WorkerProcess::start(command, environment, said));
    {
      const std::scoped_lock lock(mutex_);
      workers_.push_back(
          std::make_unique<Worker>(Worker{std::move(process), std::move(jobs), false}));
    }
    await_part(*workers_.back(), parts + 1);
    return {};
  }
  /// Time must not pass before the process has joined. reap() finds a process that never joins.
  void await_part(Worker& worker, std::uint32_t parts) {
    const auto until = std::chrono::steady_clock::now() + kJoinPatience;
    while (!clock_.await_parts(parts, kJoinLook) && std::chrono::steady_clock::now() < until) {
      const std::scoped_lock lock(mutex_);
      if (worker.process.ended()) return;
    }
  }
  [[nodiscard]] const policy::ClientSharing& share_of(std::size_t job) const {
    return setup_.shares[setup_.jobs[job].client.index()];
  }
  [[nodiscard]] WorkerSettings settings_of(std::size_t job) const {
    WorkerSettings settings;
    settings.substrate = setup_.substrate;
    settings.device = place_.gpu;
    settings.sm_percentage = share_of(job).sm_percentage;
    settings.clients = static_cast<std::uint32_t>(setup_.jobs.size());
    if (mps_) settings.mps_directory = mps_->pipe_directory();
    const std::int32_t first = setup_.jobs.front().priority;
    const bool below = setup_.jobs[job].priority < first;
    settings.priority = below ? MpsPriority::kBelowNormal : MpsPriority::kNormal;
    return settings;
  }
  [[nodiscard]] Result<Variables> environment_of(std::size_t job) const {
    if (place_.fake != nullptr) return place_.environment;
    return worker_environment(place_.environment, settings_of(job));
  }
  /// The request's settings, which the driver's error lacks.
  [[nodiscard]] std::string mps_text(std::size_t job) const {
    if (!mps_) return {};
    const WorkerSettings settings = settings_of(job);
    return "; clients of MPS: " + std::to_string(settings.clients) + ", this one with " +
           std::to_string(settings.sm_percentage) + " % and CUDA_DEVICE_MAX_CONNECTIONS=" +
           std::to_string(device_connections(settings));
  }
  Result<void> await_ready() {
    std::vector<std::string> said(setup_.jobs.size());
    while (true) {
      const std::uint32_t seen = board_->changes();
      reap();
      std::size_t ready = 0;
      for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
        const WorkerStatus seat = status(job);
        if (seat.state == WorkerState::kFailed || !alive(job)) {
          return fail(setup_.jobs[job].name, {}, "cannot run: " + end_of(job) + mps_text(job));
        } else if (seat.state == WorkerState::kReady) {
          ++ready;
        } else if (seat.text != said[job]) {
          said[job] = seat.text;
          say(setup_.jobs[job].name + ": " + seat.text);
        }
      }
      if (ready == setup_.jobs.size()) return {};
      BUBBLESIM_RETURN_IF_ERROR(stopped_by_user());
      board_->wait_for_change(seen, clock_.now() + kLook);
    }
  }
  void start_all() {
    origin_ = clock_.now() + kRunUp;
    if (host_) {
      host_->set_origin(origin_);
      crew_->start(Turn::kPolicy, [this] {
        host_->run();
        host_ended_ = true;
      });
    }
    board_->start(origin_);
  }
  Result<void> await_end() {
    const bool trains = any_trains();
    const HostTime limit =
        setup_.limit == Duration{} ? HostTime::max() : origin_ + setup_.limit;
    while (!all_finished() && !(trains && training_over()) && clock_.now() < limit) {
      const std::uint32_t seen = board_->changes();
      reap();
      // The host's thread writes its fault, so it is read after that thread's end.
      if (host_ended_ && host_->fault()) return tl::make_unexpected(*host_->fault());
      BUBBLESIM_RETURN_IF_ERROR(stopped_by_user());
      board_->wait_for_change(seen, std::min(limit, clock_.now() + kLook));
    }
    ended_ = std::min(clock_.now(), limit);
    return {};
  }
  /// Held launches go on when the gate opens, so that every process comes to its end.
  Result<void> end_all() {
    board_->stop_all();
    if (host_) host_->stop();
    while (!all_finished() || std::any_of(workers_.begin(), workers_.end(),
                                          [](const auto& worker) { return !worker->gone; })) {
      const std::uint32_t seen = board_->changes();
      if (reap()) continue;
      BUBBLESIM_RETURN_IF_ERROR(stopped_by_user());
      board_->wait_for_change(seen, clock_.now() + kLook);
    }
    if (place_.fake != nullptr) place_.fake->stop();
    crew_->wait();
    return {};
  }
  /// The jobs' records are complete: the daemon's end does not change them.
  void end_mps(RigResult& result) {
    if (!mps_) return;
    const auto ended = mps_->quit();
    if (ended) return;
    result.counters.add(kMpsNotQuit);
    say(ended.error().text());
  }
  Result<void> collect(RigResult& result) {
    if (host_ && host_->fault()) return tl::make_unexpected(*host_->fault());
    result.length = ended_ - origin_;
    for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
      JobOutcome outcome;
      outcome.end = end_of(job);
      if (status(job).state == WorkerState::kDone) {
        auto record = read_job_record(record_path(job));
        if (!record) return tl::make_unexpected(record.error());
        outcome.record = std::move(*record);
        result.counters.merge(outcome.record->counters);
      } else {
        result.counters.add(kJobsDied);
        say(setup_.jobs[job].name + ": " + outcome.end);
      }
      result.jobs.push_back(std::move(outcome));
    }
    if (host_) {
      result.host = host_->counts();
      result.counters.merge(host_->counters());
    }
    return {};
  }

  /// Handles processes that have ended. True: one has ended since the last call.
  bool reap() {
    bool reaped = false;
    for (const auto& worker : workers_) {
      {
        const std::scoped_lock lock(mutex_);
        if (worker->gone || !worker->process.ended()) continue;
        worker->gone = true;
      }
      reaped = true;
      for (const std::size_t job : worker->jobs) {
        // A process that has done its work no longer counts as a client; the policy is not told.
        if (!host_ || status(job).state == WorkerState::kDone) continue;
        host_->client_gone(setup_.jobs[job].client);
      }
    }
    return reaped;
  }
  [[nodiscard]] WorkerStatus status(std::size_t job) const {
    return board_->status(setup_.jobs[job].client);
  }
  [[nodiscard]] bool alive(std::size_t job) const {
    const std::scoped_lock lock(mutex_);
    return std::none_of(workers_.begin(), workers_.end(), [job](const auto& worker) {
      const auto& jobs = worker->jobs;
      return worker->gone && std::find(jobs.begin(), jobs.end(), job) != jobs.end();
    });
  }
  [[nodiscard]] bool finished(std::size_t job) const {
    const WorkerState state = status(job).state;
    return state == WorkerState::kDone || state == WorkerState::kFailed || !alive(job);
  }
  [[nodiscard]] bool all_finished() const {
    for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
      if (!finished(job)) return false;
    }
    return true;
  }
  [[nodiscard]] bool any_trains() const {
    return std::any_of(setup_.jobs.begin(), setup_.jobs.end(),
                       [](const JobPlan& job) { return job.loop.has_value(); });
  }
  [[nodiscard]] bool training_over() const {
    for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
      if (!setup_.jobs[job].loop || status(job).state == WorkerState::kEnding) continue;
      if (!finished(job)) return false;
    }
    return true;
  }
  [[nodiscard]] std::string plan_path(std::size_t job) const {
    return place_.folder + "/job" + std::to_string(job) + ".plan";
  }
  [[nodiscard]] std::string record_path(std::size_t job) const {
    return place_.folder + "/job" + std::to_string(job) + ".record";
  }
  [[nodiscard]] std::string end_of(std::size_t job) const {
    const WorkerStatus seat = status(job);
    if (seat.state == WorkerState::kFailed && !seat.text.empty()) return seat.text;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const auto& jobs = workers_[i]->jobs;
      if (std::find(jobs.begin(), jobs.end(), job) == jobs.end()) continue;
      // Without the mutex: the watchdog takes it while it holds its own.
      const bool stuck = watchdog_ && watchdog_->killed(i);
      const std::scoped_lock lock(mutex_);
      return (stuck ? "stuck, so " : "") + workers_[i]->process.end_text();
    }
    return {};
  }
  [[nodiscard]] Result<void> stopped_by_user() const {
    if (place_.stop != nullptr && *place_.stop) return fail("stopped before its end");
    return {};
  }
  void say(const std::string& text) const {
    if (place_.progress) place_.progress(text);
  }
  void watch() {
    std::vector<Watchdog::Watched> watched;
    for (const auto& worker : workers_) {
      watched.push_back({[this, &worker = *worker] {
                           const std::scoped_lock lock(mutex_);
                           return !worker.gone && !held_up(worker);
                         },
                         [this, &worker = *worker] { return progress_of(worker); },
                         [this, &worker = *worker] {
                           const std::scoped_lock lock(mutex_);
                           worker.process.kill();
                         }});
    }
    watchdog_ = std::make_unique<Watchdog>(std::move(watched), setup_.patience);
  }
  /// Whether another process has kept the turn since the last look: then that process is stuck.
  [[nodiscard]] bool held_up(Worker& worker) const {
    const TurnHolder now = clock_.holder();
    const TurnHolder before = std::exchange(worker.seen, now);
    return now == before && now.pid != 0 && now.pid != worker.process.pid();
  }
  [[nodiscard]] std::uint64_t progress_of(const Worker& worker) const {
    std::vector<WorkerStatus> own, others;
    for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
      const bool is_own = std::ranges::find(worker.jobs, job) != worker.jobs.end();
      (is_own ? own : others).push_back(status(job));
    }
    return progress_among(own, others);
  }

  const RigPlace& place_;
  const RigSetup& setup_;
  HostClock& clock_;
  std::unique_ptr<MpsDaemon> mps_;  ///< ends after the workers do
  std::unique_ptr<ControlBoard> board_;
  std::unique_ptr<PolicyHost> host_;
  std::atomic<bool> host_ended_{false};  ///< its run() has returned
  std::string device_;            ///< address that workers open
  mutable std::mutex mutex_;      ///< of workers_: the watchdog kills
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<Crew> crew_;
  HostTime origin_{};
  HostTime ended_{};
};

}  // namespace

Result<RigResult> run_rig(const RigPlace& place, const RigSetup& setup) {
  for (const JobPlan& job : setup.jobs) {
    BUBBLESIM_CHECK(job.client.index() < setup.shares.size(), "a job's client without a share");
  }
  std::unique_ptr<HostClock> clock;
  if (place.fake != nullptr) {
    BUBBLESIM_ASSIGN_OR_RETURN(clock, make_turn_clock());
  } else {
    clock = wall_clock(place.spin);
  }
  const std::unique_ptr<ClockPart> part = clock->join(Turn::kControl);
  return RigRun(place, setup, *clock).run();
}

}  // namespace bubblesim::capture
