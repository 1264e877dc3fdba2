#include "capture/replay/host_thread.hpp"

#include <algorithm>

namespace bubblesim::capture {
namespace {

bool hands_over(const JobPlan& plan, std::uint32_t index) {
  for (const PlanThread& thread : plan.threads) {
    for (const PlanStep& step : thread.steps) {
      if (step.after_thread == index) return true;
    }
  }
  return false;
}

}  // namespace

HostThread::HostThread(const HostThreadSetup& setup, std::uint32_t index)
    : setup_(setup), steps_(setup.plan->threads[index].steps),
      planned_costs_(setup.device->host_costs() == HostCosts::kPlanned),
      step_ends_(hands_over(*setup.plan, index) ? steps_.size() : 0) {}

bool HostThread::run_pass(HostTime begin, double factor) {
  factor_ = factor;
  last_end_ = begin;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!think(steps_[i]) || !call(steps_[i])) return false;
    end_step(i);
  }
  ++pass_;
  return true;
}

// After the previous step, or after the other thread's where that ended later.
bool HostThread::think(const PlanStep& step) {
  HostTime base = last_end_;
  if (step.after_thread != kNone) {
    const HostThread& other = *(*setup_.threads)[step.after_thread];
    const std::uint64_t needed = pass_ * other.steps_.size() + step.after_step + 1;
    if (!setup_.signals->await(WakeEvent::kStep,
                               [&] { return other.steps_done_.load() >= needed; })) {
      return false;
    }
    base = std::max(base, HostTime{Duration{other.step_ends_[step.after_step].load()}});
  }
  return setup_.signals->sleep_until(base + step.think);
}

bool HostThread::call(const PlanStep& step) {
  const HostTime start = now();
  const Duration cost = planned_costs_ ? step.cost : Duration{};
  HostTime end = start + cost;
  switch (step.kind) {
    case PlanStepKind::kPause: break;
    case PlanStepKind::kIteration:
    case PlanStepKind::kEnd:
      if (setup_.log->mark(step, start)) setup_.stop();
      break;
    case PlanStepKind::kLaunch:
    case PlanStepKind::kLaunchAndWait: {
      if (!setup_.path->launch(step, pass_, factor_, costs_)) return false;
      const HostTime launched = now();  // later than `start` where the gate held it
      end = launched + cost;
      if (step.kind == PlanStepKind::kLaunchAndWait) end = wait(step, launched, end);
      break;
    }
    case PlanStepKind::kWaitOp:
      if (!setup_.path->await_launch(step.target, pass_)) return false;
      end = wait(step, start, end);
      break;
    case PlanStepKind::kWaitStream:
    case PlanStepKind::kWaitDevice: end = wait(step, start, end); break;
  }
  if (planned_costs_ && !setup_.signals->sleep_until(end)) return false;
  last_end_ = now();
  return true;
}

// When the call returns that began at `start` and would return at `call_end` without waiting. Who
// finds what it waits for ended pays no return lag.
HostTime HostThread::wait(const PlanStep& step, HostTime start, HostTime call_end) {
  {
    const HostSignals::InsideDevice inside(*setup_.signals);
    wait_in_device(step);
  }
  const HostTime over = now();
  if (!planned_costs_ || over == start) return std::max(call_end, over);
  return std::max(call_end, over + step.return_lag);
}

void HostThread::wait_in_device(const PlanStep& step) {
  Device& device = *setup_.device;
  switch (step.kind) {
    case PlanStepKind::kWaitOp: device.wait_op(step.target, pass_); return;
    case PlanStepKind::kWaitStream: device.wait_stream(step.target); return;
    case PlanStepKind::kLaunchAndWait:
      device.wait_stream(setup_.plan->ops[step.target + step.count - 1].stream);
      return;
    default: device.wait_all();
  }
}

void HostThread::end_step(std::size_t step) {
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
