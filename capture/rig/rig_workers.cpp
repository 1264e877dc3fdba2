// The processes of a run: their start and their state.
#include <algorithm>
#include <chrono>
#include <utility>

#include "capture/replay/job_files.hpp"
#include "capture/rig/rig_run.hpp"
#include "capture/substrate/process_environment.hpp"

namespace bubblesim::capture {
namespace {

// The machine's time within which a process must join the clock.
constexpr Duration kJoinPatience = std::chrono::seconds(30);
constexpr Duration kJoinLook = std::chrono::milliseconds(20);

}  // namespace

std::string RigRun::plan_path(std::size_t job) const {
  return place_.folder + "/job" + std::to_string(job) + ".plan";
}

std::string RigRun::record_path(std::size_t job) const {
  return place_.folder + "/job" + std::to_string(job) + ".record";
}

Result<void> RigRun::write_plans() {
  for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
    BUBBLESIM_RETURN_IF_ERROR(write_job_plan(plan_path(job), setup_.jobs[job].plan));
  }
  return {};
}

Result<void> RigRun::start_workers() {
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

Result<void> RigRun::start_worker(std::vector<std::size_t> jobs) {
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
      setup_.jobs[jobs.front()].sm_percentage < 100) {
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

// Time must not pass before the process has joined. reap() finds a process that never joins.
void RigRun::await_part(Worker& worker, std::uint32_t parts) {
  const auto until = std::chrono::steady_clock::now() + kJoinPatience;
  while (!clock_.await_parts(parts, kJoinLook) && std::chrono::steady_clock::now() < until) {
    const std::scoped_lock lock(mutex_);
    if (worker.process.ended()) return;
  }
}

WorkerSettings RigRun::settings_of(std::size_t job) const {
  WorkerSettings settings;
  settings.substrate = setup_.substrate;
  settings.device = place_.gpu;
  settings.sm_percentage = setup_.jobs[job].sm_percentage;
  settings.clients = static_cast<std::uint32_t>(setup_.jobs.size());
  if (mps_) settings.mps_directory = mps_->pipe_directory();
  const std::int32_t first = setup_.jobs.front().plan.priority;
  const bool below = setup_.jobs[job].plan.priority < first;
  settings.priority = below ? MpsPriority::kBelowNormal : MpsPriority::kNormal;
  return settings;
}

Result<Variables> RigRun::environment_of(std::size_t job) const {
  if (place_.fake != nullptr) return place_.environment;
  return worker_environment(place_.environment, settings_of(job));
}

// The request's settings, which the driver's error lacks.
std::string RigRun::mps_text(std::size_t job) const {
  if (!mps_) return {};
  const WorkerSettings settings = settings_of(job);
  return "; clients of MPS: " + std::to_string(settings.clients) + ", this one with " +
         std::to_string(settings.sm_percentage) + " % and CUDA_DEVICE_MAX_CONNECTIONS=" +
         std::to_string(device_connections(settings));
}

void RigRun::watch() {
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

// Whether another process has kept the turn since the last look: then that process is stuck.
bool RigRun::held_up(Worker& worker) const {
  const TurnHolder now = clock_.holder();
  const TurnHolder before = std::exchange(worker.seen, now);
  return now == before && now.pid != 0 && now.pid != worker.process.pid();
}

std::uint64_t RigRun::progress_of(const Worker& worker) const {
  std::vector<WorkerStatus> own, others;
  for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
    const bool is_own = std::ranges::find(worker.jobs, job) != worker.jobs.end();
    (is_own ? own : others).push_back(status(job));
  }
  return progress_among(own, others);
}

bool RigRun::reap() {
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
      host_->client_gone(setup_.jobs[job].plan.client);
    }
  }
  return reaped;
}

WorkerStatus RigRun::status(std::size_t job) const {
  return board_->status(setup_.jobs[job].plan.client);
}

bool RigRun::alive(std::size_t job) const {
  const std::scoped_lock lock(mutex_);
  return std::none_of(workers_.begin(), workers_.end(), [job](const auto& worker) {
    const auto& jobs = worker->jobs;
    return worker->gone && std::find(jobs.begin(), jobs.end(), job) != jobs.end();
  });
}

bool RigRun::finished(std::size_t job) const {
  const WorkerState state = status(job).state;
  return state == WorkerState::kDone || state == WorkerState::kFailed || !alive(job);
}

bool RigRun::all_finished() const {
  for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
    if (!finished(job)) return false;
  }
  return true;
}

bool RigRun::any_trains() const {
  return std::any_of(setup_.jobs.begin(), setup_.jobs.end(),
                     [](const RigJob& job) { return job.plan.loop.has_value(); });
}

bool RigRun::training_over() const {
  for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
    if (!setup_.jobs[job].plan.loop || status(job).state == WorkerState::kEnding) continue;
    if (!finished(job)) return false;
  }
  return true;
}

std::string RigRun::end_of(std::size_t job) const {
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

}  // namespace bubblesim::capture
