// The step that runs and the one that was scheduled behind it: how an engine's loop drives its
// scheduler. The caller says when a step ends.
#pragma once

#include <optional>
#include <utility>

#include "sim/base/time.hpp"
#include "sim/serving/scheduler.hpp"

namespace bubblesim::serving {

/// A step that starts now.
struct StepStart {
  const ScheduledStep* step = nullptr;
  bool queued = false;  ///< it was scheduled while another ran
};

class StepQueue {
 public:
  /// `scheduler` outlives this, and only this schedules and ends its steps.
  explicit StepQueue(Scheduler& scheduler) : scheduler_(scheduler) {}

  /// Schedules what can be scheduled now; to be called when requests have arrived and nothing runs,
  /// and when a step has ended and what arrived meanwhile was taken. The step that starts, if any.
  [[nodiscard]] std::optional<StepStart> refill(SimTime now) {
    std::optional<StepStart> start;
    if (running_ == nullptr && next_ != nullptr) {
      running_ = std::exchange(next_, nullptr);
      start = StepStart{running_, true};
    }
    while (const ScheduledStep* step = scheduler_.next_step(now)) {
      if (running_ != nullptr) {
        next_ = step;
      } else {
        running_ = step;
        start = StepStart{step, false};
      }
    }
    return start;
  }

  /// The running step ends. Precondition: one runs.
  const StepOutcome& finish(SimTime now) {
    running_ = nullptr;
    return scheduler_.finish_step(now);
  }

  /// Null: none runs.
  [[nodiscard]] const ScheduledStep* running() const { return running_; }

 private:
  Scheduler& scheduler_;
  const ScheduledStep* running_ = nullptr;
  const ScheduledStep* next_ = nullptr;
};

}  // namespace bubblesim::serving
