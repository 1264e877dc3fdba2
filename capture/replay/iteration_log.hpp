// Ends of iterations and passes: written down, told to the gate, counted against the goal.
#pragma once

#include <functional>

#include "capture/gate/gate_client.hpp"
#include "capture/replay/job_plan.hpp"
#include "capture/replay/job_record.hpp"

namespace bubblesim::capture {

/// Used by one thread: the marked one of a job that trains, the leading one of a service.
class IterationLog {
 public:
  /// `gate` may be null, `told` empty: it is called at each end, also of a service's pass.
  IterationLog(const JobPlan& plan, GateClient* gate, std::function<void()> told)
      : plan_(plan), gate_(gate), told_(std::move(told)) {}

  void begin(HostTime origin) { origin_ = last_ = origin; }

  /// A kIteration or kEnd step. The first iteration lasts from the origin on. True: the job has
  /// reached its iterations.
  [[nodiscard]] bool mark(const program::Step& step, HostTime now);

  /// A service's pass for so many requests has ended.
  void pass(HostTime start, HostTime end, std::uint64_t requests);

  /// Moves what was written down into the record.
  void move_into(JobRecord& record);

 private:
  void tell(Duration length);

  const JobPlan& plan_;
  GateClient* gate_;
  std::function<void()> told_;
  HostTime origin_{};
  HostTime last_{};
  std::vector<Duration> iterations_;
  std::vector<Duration> passes_;
  std::vector<std::uint64_t> pass_requests_;
};

}  // namespace bubblesim::capture
