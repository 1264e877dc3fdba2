#include "capture/replay/job_runner.hpp"

#include <algorithm>
#include <utility>

#include "capture/clock/crew.hpp"
#include "capture/replay/launch_path.hpp"

namespace bubblesim::capture {
namespace {

/// Threads of a job beyond this number share the last Turn of their kind.
constexpr std::size_t kMostTurns = 9;

}  // namespace

JobRunner::JobRunner(const JobPlan& plan, const JobSetup& setup)
    : plan_(plan), setup_(setup), signals_(*setup.clock),
      log_(plan, setup.gate, setup.on_iteration, record_),
      watch_(plan, setup.gate, signals_, setup_.on_progress, record_) {
  if (plan.serve) queue_.emplace(*plan.serve);
}

JobRunner::~JobRunner() = default;

Result<void> JobRunner::prepare(std::function<void(const std::string&)> progress) {
  // If notices of operations cost nothing, they are always used: a thread that waits for room in
  // the window then goes on at once.
  const bool watched = setup_.device->host_costs() == HostCosts::kPlanned ||
                       DeviceWatch::is_needed(plan_, setup_.gate);
  BUBBLESIM_RETURN_IF_ERROR(setup_.device->prepare(
      {&plan_, watched ? &watch_ : nullptr, std::move(progress)}));
  path_ = std::make_unique<LaunchPath>(plan_, *setup_.device, setup_.gate, signals_);
  thread_setup_ = {&plan_,    setup_.device,       &signals_, path_.get(), &log_,
                   &threads_, setup_.on_progress, [this] { request_stop(); }};
  for (std::uint32_t i = 0; i < plan_.program.threads.size(); ++i) {
    threads_.push_back(std::make_unique<ReplayThread>(thread_setup_, i));
    if (plan_.program.threads[i].steps.empty()) continue;
    if (working_threads_++ == 0) leader_ = i;
  }
  return {};
}

void JobRunner::request_stop() {
  signals_.stop();
  setup_.device->end_launches();
}

Turn JobRunner::turn_of(std::size_t thread) const {
  const Turn first = plan_.client.value == 0 ? Turn::kTraining : Turn::kFiller;
  return static_cast<Turn>(static_cast<std::uint32_t>(first) +
                           static_cast<std::uint32_t>(std::min(thread, kMostTurns)));
}

ReplayEnd JobRunner::run(HostTime origin) {
  origin_ = origin;
  begin_ = origin + plan_.program.start_offset;
  log_.begin(origin);
  watch_.begin(origin);
  {
    Crew crew(*setup_.clock);
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (plan_.program.threads[i].steps.empty()) continue;
      crew.start(turn_of(i), [this, i] { run_thread(i); });
    }
    crew.wait();
  }
  record_.ended = since_origin();
  const auto closed = setup_.device->close();
  record_.name = plan_.name;
  record_.rank = plan_.program.rank;
  if (queue_) record_.unfinished = queue_->unfinished(record_.ended);
  watch_.add_calls(*path_);
  write_costs();
  return {std::move(record_), closed ? std::nullopt : std::optional(closed.error())};
}

void JobRunner::write_costs() {
  for (const auto& thread : threads_) {
    record_.launches += thread->costs().launches;
    record_.gate_time += thread->costs().gate;
    record_.held_time += thread->costs().held;
  }
  if (setup_.gate != nullptr) record_.gate = setup_.gate->counts();
  record_.counters = setup_.device->counters();
}

void JobRunner::run_thread(std::size_t index) {
  ReplayThread& thread = *threads_[index];
  if (!signals_.sleep_until(begin_)) return;
  if (plan_.loop) {
    loop(thread);
  } else if (index == leader_) {
    lead(thread);
  } else {
    follow(thread);
  }
}

void JobRunner::loop(ReplayThread& thread) {
  HostTime begin = signals_.now();
  while (thread.run_pass(begin, 1.0)) {
    begin = program::next_pass(begin, thread.last_end());
  }
}

// The first thread with steps begins a service's passes, and waits for their end.
void JobRunner::lead(ReplayThread& thread) {
  while (const auto start = queue_->next_start(since_origin())) {
    if (!signals_.sleep_until(origin_ + *start) || !serve_batch(thread)) break;
  }
  request_stop();
}

bool JobRunner::serve_batch(ReplayThread& thread) {
  const std::uint64_t requests = queue_->take(since_origin());
  pass_begin_ = signals_.now();
  pass_factor_ = plan_.serve->batching.pass_factor(requests);
  const std::uint64_t passes = passes_begun_.fetch_add(1) + 1;
  signals_.notify(WakeEvent::kPass);
  if (!thread.run_pass(pass_begin_, pass_factor_)) return false;
  const std::uint64_t all = passes * (working_threads_ - 1);
  const auto followed = [&] { return followers_done_.load() == all; };
  if (!signals_.await(WakeEvent::kPass, followed)) return false;
  {
    const HostSignals::InsideDevice inside(signals_);
    setup_.device->wait_all();
  }
  // A stop ends a pass early.
  if (signals_.stopping()) return false;
  const HostTime end = signals_.now();
  for (const Duration arrival : queue_->batch()) {
    record_.requests.push_back({arrival, pass_begin_ - origin_, end - origin_});
  }
  queue_->served();
  log_.pass(pass_begin_, end, requests);
  return signals_.sleep_until(pass_begin_ + Duration{1});
}

void JobRunner::follow(ReplayThread& thread) {
  for (std::uint64_t pass = 1;; ++pass) {
    if (!signals_.await(WakeEvent::kPass, [&] { return passes_begun_.load() >= pass; })) return;
    if (!thread.run_pass(pass_begin_, pass_factor_)) return;
    followers_done_.fetch_add(1);
    signals_.notify(WakeEvent::kPass);
  }
}

}  // namespace bubblesim::capture
