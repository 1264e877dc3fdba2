// A server that has its GPU to itself, without the event engine. With it laws, benchmarks and unit
// tests drive the scheduler, from a source of requests and a cost of steps.
#pragma once

#include <algorithm>
#include <optional>

#include "sim/base/check.hpp"
#include "sim/base/time.hpp"
#include "sim/serving/scheduler.hpp"
#include "sim/serving/step.hpp"

namespace bubblesim::serving {

/// Requests in order of arrival; their number may be infinite.
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  /// The next request. It arrives no earlier than the previous one. Nothing: there are no more.
  [[nodiscard]] virtual std::optional<Request> next() = 0;
};

/// How long steps take.
class StepCost {
 public:
  virtual ~StepCost() = default;
  /// From the step's start until the scheduler knows its tokens. A `queued` step was scheduled
  /// while another ran, which hides the host's time to prepare it.
  [[nodiscard]] virtual Duration step_time(const ScheduledStep& step, bool queued) = 0;
};

/// Watches a server.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  virtual void on_arrival(const Request& request, ArrivalOutcome what) = 0;
  /// After a step has ended, with the scheduler's state after it.
  virtual void on_step(const ScheduledStep& step, SimTime start, SimTime end,
                       const Scheduler& state) = 0;
  virtual void on_finished(const FinishedRequest& request) = 0;
};

class LoneServer {
 public:
  LoneServer(Scheduler& scheduler, RequestSource& source, StepCost& cost, ServerObserver& observer)
      : scheduler_(scheduler), steps_(scheduler), source_(source), cost_(cost),
        observer_(observer), coming_(source.next()) {}

  SimTime run() {
    while (steps_.running() != nullptr || coming_) {
      if (steps_.running() != nullptr) {
        now_ = end_;
        end_step();
      } else {
        now_ = std::max(now_, coming_->arrival);
      }
      take_arrivals();
      if (const auto started = steps_.refill(now_)) {
        start_ = now_;
        end_ = now_ + cost_.step_time(*started->step, started->queued);
      }
    }
    BUBBLESIM_CHECK(scheduler_.is_idle(), "a server stopped with requests in flight");
    return now_;
  }

 private:
  void end_step() {
    const ScheduledStep& step = *steps_.running();
    const StepOutcome& outcome = steps_.finish(now_);
    observer_.on_step(step, start_, now_, scheduler_);
    for (const FinishedRequest& request : outcome.finished) observer_.on_finished(request);
  }

  void take_arrivals() {
    while (coming_ && coming_->arrival <= now_) {
      observer_.on_arrival(*coming_, scheduler_.arrive(*coming_));
      coming_ = source_.next();
    }
  }

  Scheduler& scheduler_;
  StepQueue steps_;
  RequestSource& source_;
  StepCost& cost_;
  ServerObserver& observer_;
  std::optional<Request> coming_;
  SimTime now_{};
  SimTime start_{};  ///< of the step that runs
  SimTime end_{};
};

/// Serves all requests of `source`, whose number must be finite, and returns the end of the last
/// step. A request that arrives during a step waits for its end, as if the engine's loop were busy.
inline SimTime serve_alone(Scheduler& scheduler, RequestSource& source, StepCost& cost,
                           ServerObserver& observer) {
  return LoneServer(scheduler, source, cost, observer).run();
}

}  // namespace bubblesim::serving
