#include "sim/serving/lone_server.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/check.hpp"
#include "sim/serving/step_queue.hpp"

namespace bubblesim::serving {
namespace {

class Loop {
 public:
  Loop(Scheduler& scheduler, RequestSource& source, StepCost& cost, ServerObserver& observer)
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
        end_ = now_ + cost_.of(*started->step, started->queued);
      }
    }
    BUBBLESIM_CHECK(scheduler_.is_idle(), "a server stopped with requests in flight");
    return now_;
  }

 private:
  void end_step() {
    const Step& step = *steps_.running();
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

}  // namespace

SimTime serve_alone(Scheduler& scheduler, RequestSource& source, StepCost& cost,
                    ServerObserver& observer) {
  return Loop(scheduler, source, cost, observer).run();
}

}  // namespace bubblesim::serving
