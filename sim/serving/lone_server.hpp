// A server that has its GPU to itself: a scheduler, requests that arrive, and what a step costs.
// From a workload to latencies without the event engine.
#pragma once

#include "sim/base/time.hpp"
#include "sim/serving/request.hpp"
#include "sim/serving/scheduler.hpp"

namespace bubblesim::serving {

/// How long steps take.
class StepCost {
 public:
  virtual ~StepCost() = default;
  /// From the step's start until the scheduler knows its tokens. A `queued` step was scheduled
  /// while another ran: what the host does to prepare it is hidden behind that.
  [[nodiscard]] virtual Duration of(const Step& step, bool queued) = 0;
};

/// Watches a server.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  virtual void on_arrival(const Request& request, Arrival what) = 0;
  /// After a step has ended, with the scheduler's state after it.
  virtual void on_step(const Step& step, SimTime start, SimTime end, const Scheduler& state) = 0;
  virtual void on_finished(const FinishedRequest& request) = 0;
};

/// Serves all requests of `source`, which must end, and returns when the last step has ended. A
/// request that arrives while a step runs waits for its end, as in an engine whose loop is busy.
SimTime serve_alone(Scheduler& scheduler, RequestSource& source, StepCost& cost,
                    ServerObserver& observer);

}  // namespace bubblesim::serving
