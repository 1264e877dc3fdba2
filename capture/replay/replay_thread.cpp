#include "capture/replay/replay_thread.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::capture {

void IterationLog::tell(Duration length) {
  if (gate_ != nullptr) gate_->iteration_ended(length);
  if (told_) told_();
}

bool IterationLog::mark(const program::Step& step, HostTime now) {
  const bool ends_pass = step.kind == program::StepKind::kEnd;
  if (!plan_.loop || (!ends_pass && step.target == 0)) return false;
  iterations_.push_back(now - origin_);
  if (ends_pass) passes_.push_back(now - origin_);
  tell(now - std::exchange(last_, now));
  return plan_.loop->iterations > 0 && iterations_.size() >= plan_.loop->iterations;
}

void IterationLog::pass(HostTime start, HostTime end, std::uint64_t requests) {
  passes_.push_back(end - origin_);
  pass_requests_.push_back(requests);
  tell(end - start);
}

void IterationLog::move_into(JobRecord& record) {
  record.iterations = std::move(iterations_);
  record.passes = std::move(passes_);
  record.pass_requests = std::move(pass_requests_);
}

namespace {

bool hands_over(const program::Program& program, std::uint32_t index) {
  return std::any_of(program.details.begin(), program.details.end(),
                     [index](const auto& detail) { return detail.after_thread == index; });
}

}  // namespace

ReplayThread::ReplayThread(const ReplayThreadSetup& setup, std::uint32_t index)
    : setup_(setup), program_(setup.plan->program), steps_(program_.threads[index].steps),
      planned_costs_(setup.device->host_costs() == HostCosts::kPlanned),
      step_ends_(hands_over(program_, index) ? steps_.size() : 0) {}

bool ReplayThread::run_pass(HostTime begin, double factor) {
  factor_ = factor;
  last_end_ = begin;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!think(steps_[i]) || !call(steps_[i])) return false;
    end_step(i);
  }
  ++pass_;
  return true;
}

// Thinks after the previous step, or after another thread's step if that ended later.
bool ReplayThread::think(const program::Step& step) {
  HostTime base = last_end_;
  if (const program::StepDetail* after = program::hand_over(program_, step)) {
    const ReplayThread& other = *(*setup_.threads)[after->after_thread];
    const std::uint64_t needed = program::steps_needed(program_, *after, pass_);
    if (!setup_.signals->await(WakeEvent::kStep,
                               [&] { return other.steps_done_.load() >= needed; })) {
      return false;
    }
    base = std::max(base, HostTime{Duration{other.step_ends_[after->after_step].load()}});
  }
  return setup_.signals->sleep_until(base + step.think.duration());
}

bool ReplayThread::call(const program::Step& step) {
  HostTime start = now();
  switch (step.kind) {
    case program::StepKind::kIteration:
    case program::StepKind::kEnd:
      if (setup_.log->mark(step, start)) setup_.stop();
      break;
    case program::StepKind::kLaunch:
    case program::StepKind::kLaunchAndWait:
      if (!setup_.path->launch(step, pass_, factor_, costs_)) return false;
      start = now();  // later if the gate held it
      break;
    default: break;
  }
  HostTime end = start + (planned_costs_ ? step.cost.duration() : Duration{});
  const program::Awaited awaited = program::awaited_by(program_, step);
  // The device's launch queue limits how far a host runs ahead.
  if (awaited.kind != program::AwaitedKind::kNothing && awaited.passes_back == 0) {
    if (awaited.kind == program::AwaitedKind::kOp &&
        !setup_.path->await_launch(awaited.index, pass_)) {
      return false;
    }
    end = wait(step, awaited, start, end);
  }
  if (planned_costs_ && !setup_.signals->sleep_until(end)) return false;
  last_end_ = now();
  return true;
}

// When the call returns that began at `start` and, without waiting, would return at `call_end`. If
// the awaited work has ended, there is no return lag.
HostTime ReplayThread::wait(const program::Step& step, const program::Awaited& awaited,
                            HostTime start, HostTime call_end) {
  {
    const HostSignals::InsideDevice inside(*setup_.signals);
    wait_in_device(awaited);
  }
  const HostTime over = now();
  if (!planned_costs_ || over == start) return std::max(call_end, over);
  return std::max(call_end, over + program::return_lag(program_, step));
}

void ReplayThread::wait_in_device(const program::Awaited& awaited) {
  Device& device = *setup_.device;
  switch (awaited.kind) {
    case program::AwaitedKind::kNothing: return;
    case program::AwaitedKind::kStream: return device.wait_stream(awaited.index);
    case program::AwaitedKind::kOp: return device.wait_op(awaited.index, pass_);
    case program::AwaitedKind::kDevice: return device.wait_all();
  }
}

void ReplayThread::end_step(std::size_t step) {
  if (setup_.progress) setup_.progress();
  if (step_ends_.empty()) {
    steps_done_.fetch_add(1);
    return;
  }
  step_ends_[step].store(last_end_.time_since_epoch().count());
  steps_done_.fetch_add(1);
  setup_.signals->notify(WakeEvent::kStep);
}

}  // namespace bubblesim::capture
