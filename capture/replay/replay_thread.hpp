// One host thread of a plan: thinks, calls, waits, hands over by sim/program/rules.hpp, in real
// time where the simulator schedules.
//
// Think times count from actual times: after a late wake-up the thread stays late, as a real one
// does.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "capture/gate/gate_client.hpp"
#include "capture/replay/host_signals.hpp"
#include "capture/replay/job_plan.hpp"
#include "capture/replay/job_record.hpp"
#include "capture/replay/launch_path.hpp"
#include "sim/program/rules.hpp"

namespace bubblesim::capture {

// Handles ends of iterations and passes: notes them, tells the gate, counts them against the goal.

/// Used by one thread: the marked one of a job that trains, the leading one of a service.
class IterationLog {
 public:
  /// `gate` may be null, `told` empty. Calls `told` at each end, also of a service's pass. The ends
  /// go into `record`.
  IterationLog(const JobPlan& plan, GateClient* gate, std::function<void()> told, JobRecord& record)
      : plan_(plan), gate_(gate), told_(std::move(told)), record_(record) {}

  void begin(HostTime origin) { origin_ = last_ = origin; }

  /// Marks a kIteration or kEnd step. The first iteration lasts from the origin on. True: the job
  /// has reached its iterations.
  [[nodiscard]] bool mark(const program::Step& step, HostTime now) {
    const bool ends_pass = step.kind == program::StepKind::kEnd;
    if (!plan_.loop || (!ends_pass && step.target == 0)) return false;
    record_.iterations.push_back(now - origin_);
    if (ends_pass) record_.passes.push_back(now - origin_);
    tell(now - std::exchange(last_, now));
    return plan_.loop->iterations > 0 && record_.iterations.size() >= plan_.loop->iterations;
  }

  /// A service's pass for `requests` requests has ended.
  void pass(HostTime start, HostTime end, std::uint64_t requests) {
    record_.passes.push_back(end - origin_);
    record_.pass_requests.push_back(requests);
    tell(end - start);
  }

 private:
  void tell(Duration length) {
    if (gate_ != nullptr) gate_->iteration_ended(length);
    if (told_) told_();
  }

  const JobPlan& plan_;
  GateClient* gate_;
  std::function<void()> told_;
  JobRecord& record_;
  HostTime origin_{};
  HostTime last_{};
};

class ReplayThread;

/// State that the threads of a job share. All pointers outlive them.
struct ReplayThreadSetup {
  const JobPlan* plan = nullptr;
  Device* device = nullptr;
  HostSignals* signals = nullptr;
  LaunchPath* path = nullptr;
  IterationLog* log = nullptr;
  const std::vector<std::unique_ptr<ReplayThread>>* threads = nullptr;  ///< of the plan, all
  std::function<void()> progress;  ///< at each step; may be empty
  std::function<void()> stop;      ///< the job has reached its iterations
};

class ReplayThread {
 public:
  ReplayThread(const ReplayThreadSetup& setup, std::uint32_t index)
      : setup_(setup),
        program_(setup.plan->program),
        steps_(program_.threads[index].steps),
        planned_costs_(setup.device->host_costs() == HostCosts::kPlanned),
        step_ends_(is_awaited(program_, index) ? steps_.size() : 0) {}

  /// Does all steps once; the first one's think time counts from `begin`. Device operations last
  /// `factor` times their own time. False: told to stop.
  [[nodiscard]] bool run_pass(HostTime begin, double factor) {
    factor_ = factor;
    last_end_ = begin;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!think(steps_[i]) || !call(steps_[i])) return false;
      end_step(i);
    }
    ++pass_;
    return true;
  }

  /// The end of the last finished step.
  [[nodiscard]] HostTime last_end() const { return last_end_; }
  [[nodiscard]] const LaunchCosts& costs() const { return costs_; }

 private:
  /// Whether another thread waits for a hand-over of this one.
  [[nodiscard]] static bool is_awaited(const program::Program& program, std::uint32_t index) {
    return std::ranges::any_of(program.details, [index](const program::StepDetail& detail) {
      return detail.after_thread == index;
    });
  }
  /// Thinks after the previous step, or after another thread's step if that ended later.
  [[nodiscard]] bool think(const program::Step& step) {
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
  [[nodiscard]] bool call(const program::Step& step) {
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
      default:
        break;
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
  /// When the call returns that began at `start` and, without waiting, would return at `call_end`.
  /// If the awaited work has ended, there is no return lag.
  [[nodiscard]] HostTime wait(const program::Step& step, const program::Awaited& awaited,
                              HostTime start, HostTime call_end) {
    {
      const HostSignals::InsideDevice inside(*setup_.signals);
      wait_in_device(awaited);
    }
    const HostTime over = now();
    if (!planned_costs_ || over == start) return std::max(call_end, over);
    return std::max(call_end, over + program::return_lag(program_, step));
  }
  void wait_in_device(const program::Awaited& awaited) {
    Device& device = *setup_.device;
    switch (awaited.kind) {
      case program::AwaitedKind::kNothing:
        return;
      case program::AwaitedKind::kStream:
        return device.wait_stream(awaited.index);
      case program::AwaitedKind::kOp:
        return device.wait_op(awaited.index, pass_);
      case program::AwaitedKind::kDevice:
        return device.wait_all();
    }
  }
  void end_step(std::size_t step) {
    if (setup_.progress) setup_.progress();
    if (step_ends_.empty()) {
      steps_done_.fetch_add(1);
      return;
    }
    step_ends_[step].store(last_end_.time_since_epoch().count());
    steps_done_.fetch_add(1);
    setup_.signals->notify(WakeEvent::kStep);
  }
  [[nodiscard]] HostTime now() const { return setup_.signals->now(); }

  const ReplayThreadSetup& setup_;
  const program::Program& program_;
  std::span<const program::Step> steps_;
  bool planned_costs_;
  double factor_ = 1;
  std::uint64_t pass_ = 0;
  HostTime last_end_{};
  LaunchCosts costs_;
  std::atomic<std::uint64_t> steps_done_{0};  ///< over all passes
  std::vector<std::atomic<std::int64_t>> step_ends_;  ///< empty: no thread waits for a hand-over
};

}  // namespace bubblesim::capture
