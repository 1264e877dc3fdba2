#include "sim/serving/lone_server.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::serving {
namespace {

class Loop {
 public:
  Loop(Scheduler& scheduler, RequestSource& source, StepCost& cost, ServerObserver& observer)
      : scheduler_(scheduler), source_(source), cost_(cost), observer_(observer),
        coming_(source.next()) {}

  SimTime run() {
    while (running_ != nullptr || coming_) {
      if (running_ == nullptr) {
        take_arrivals(now_ = std::max(now_, coming_->arrival));
      } else {
        end_step();
      }
      schedule();
    }
    BUBBLESIM_CHECK(scheduler_.is_idle(), "a server stopped with requests in flight");
    return now_;
  }

 private:
  void take_arrivals(SimTime until) {
    while (coming_ && coming_->arrival <= until) {
      observer_.on_arrival(*coming_, scheduler_.arrive(*coming_));
      coming_ = source_.next();
    }
  }

  void end_step() {
    now_ = end_;
    const StepOutcome& outcome = scheduler_.finish_step(now_);
    observer_.on_step(*running_, start_, now_, scheduler_);
    for (const FinishedRequest& request : outcome.finished) observer_.on_finished(request);
    running_ = nullptr;
    if (next_ != nullptr) start(std::exchange(next_, nullptr), true);
    take_arrivals(now_);
  }

  void schedule() {
    while (const Step* step = scheduler_.next_step(now_)) {
      if (running_ == nullptr) {
        start(step, false);
      } else {
        next_ = step;
      }
    }
  }

  void start(const Step* step, bool queued) {
    running_ = step;
    start_ = now_;
    end_ = now_ + cost_.of(*step, queued);
  }

  Scheduler& scheduler_;
  RequestSource& source_;
  StepCost& cost_;
  ServerObserver& observer_;
  std::optional<Request> coming_;
  const Step* running_ = nullptr;
  const Step* next_ = nullptr;  ///< scheduled while `running_` runs
  SimTime now_{};
  SimTime start_{};
  SimTime end_{};
};

}  // namespace

SimTime serve_alone(Scheduler& scheduler, RequestSource& source, StepCost& cost,
                    ServerObserver& observer) {
  return Loop(scheduler, source, cost, observer).run();
}

}  // namespace bubblesim::serving
