// A run, from the start of its first process to its last record.
#include "capture/rig/rig_run.hpp"

#include <algorithm>
#include <chrono>

#include "capture/replay/job_files.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::capture {
namespace {

// How often the rig looks for processes that died; a process that ends well rings.
constexpr Duration kLook = std::chrono::milliseconds(20);
// Time before the common start, so that every thread waits for it.
constexpr Duration kRunUp = std::chrono::milliseconds(50);

}  // namespace

RigRun::RigRun(const RigPlace& place, const RigSetup& setup, HostClock& clock)
    : place_(place), setup_(setup), clock_(clock), crew_(std::make_unique<Crew>(clock)) {}

// In every case: no process and no thread is left.
RigRun::~RigRun() {
  watchdog_.reset();
  workers_.clear();
  if (host_) host_->stop();
  if (place_.fake != nullptr && !device_.empty()) place_.fake->stop();
  crew_->wait();
}

Result<RigResult> RigRun::run(const policy::Sharing& sharing,
                              const std::vector<policy::ClientSharing>& shares) {
  BUBBLESIM_RETURN_IF_ERROR(begin_fake(sharing, shares));
  BUBBLESIM_RETURN_IF_ERROR(make_gate(sharing.mode));
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

Result<void> RigRun::begin_fake(const policy::Sharing& sharing,
                                const std::vector<policy::ClientSharing>& shares) {
  if (place_.fake == nullptr) {
    device_ = "cuda:0";  // the only device that its environment shows to a worker
    return begin_mps();
  }
  BUBBLESIM_ASSIGN_OR_RETURN(device_, place_.fake->begin(clock_, setup_, sharing, shares));
  crew_->start(Turn::kDevice, [fake = place_.fake] { fake->run(); });
  return {};
}

Result<void> RigRun::begin_mps() {
  if (setup_.substrate != Substrate::kMps) return {};
  MpsSettings settings;
  settings.folder = place_.folder;
  settings.environment = place_.environment;
  settings.device = place_.gpu;
  BUBBLESIM_ASSIGN_OR_RETURN(mps_, MpsDaemon::start(settings));
  for (const std::string& note : mps_->notes()) say(note);
  return {};
}

Result<void> RigRun::make_gate(policy::SharingMode sharing) {
  if (setup_.spec == nullptr) return {};
  PolicyHostSetup host;
  host.spec = setup_.spec;
  host.policy = setup_.policy;
  host.sharing = sharing;
  for (const policy::ClientInfo& client : setup_.clients) {
    const bool first = client.id == ClientId{0};
    host.clients.push_back(
        {client, first ? setup_.training_gate : GateMode::kAsk, first ? 0 : setup_.window});
  }
  BUBBLESIM_ASSIGN_OR_RETURN(host_, PolicyHost::make(clock_, std::move(host)));
  return {};
}

Result<void> RigRun::await_ready() {
  std::vector<std::string> said(setup_.jobs.size());
  while (true) {
    const std::uint32_t seen = board_->changes();
    reap();
    std::size_t ready = 0;
    for (std::size_t job = 0; job < setup_.jobs.size(); ++job) {
      const WorkerStatus seat = status(job);
      if (seat.state == WorkerState::kFailed || !alive(job)) {
        return fail(setup_.jobs[job].plan.name, {}, "cannot run: " + end_of(job) + mps_text(job));
      } else if (seat.state == WorkerState::kReady) {
        ++ready;
      } else if (seat.text != said[job]) {
        said[job] = seat.text;
        say(setup_.jobs[job].plan.name + ": " + seat.text);
      }
    }
    if (ready == setup_.jobs.size()) return {};
    BUBBLESIM_RETURN_IF_ERROR(stopped_by_user());
    board_->wait_for_change(seen, clock_.now() + kLook);
  }
}

void RigRun::start_all() {
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

Result<void> RigRun::await_end() {
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

// Held launches go on when the gate opens, so that every process comes to its end.
Result<void> RigRun::end_all() {
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

// The jobs' records are complete: the daemon's end does not change them.
void RigRun::end_mps(RigResult& result) {
  if (!mps_) return;
  const auto ended = mps_->quit();
  if (ended) return;
  result.counters.add(kMpsNotQuit);
  say(ended.error().text());
}

Result<void> RigRun::collect(RigResult& result) {
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
      say(setup_.jobs[job].plan.name + ": " + outcome.end);
    }
    result.jobs.push_back(std::move(outcome));
  }
  if (host_) {
    result.host = host_->counts();
    result.counters.merge(host_->counters());
  }
  return {};
}

Result<void> RigRun::stopped_by_user() const {
  if (place_.stop != nullptr && *place_.stop) return fail("stopped before its end");
  return {};
}

void RigRun::say(const std::string& text) const {
  if (place_.progress) place_.progress(text);
}

Result<RigResult> run_rig(const RigPlace& place, const RigSetup& setup,
                          const policy::Sharing& sharing,
                          const std::vector<policy::ClientSharing>& shares) {
  std::unique_ptr<HostClock> clock;
  if (place.fake != nullptr) {
    BUBBLESIM_ASSIGN_OR_RETURN(clock, make_turn_clock());
  } else {
    clock = wall_clock(place.spin);
  }
  const std::unique_ptr<ClockPart> part = clock->join(Turn::kControl);
  return RigRun(place, setup, *clock).run(sharing, shares);
}

}  // namespace bubblesim::capture
