// One host thread of a plan: thinks, calls, waits, hands over by sim/program/rules.hpp, in real
// time where the simulator schedules.
//
// Think times count from actual times: after a late wake-up the thread stays late, as a real one
// does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
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
  /// `gate` may be null, `told` empty. Calls `told` at each end, also of a service's pass.
  IterationLog(const JobPlan& plan, GateClient* gate, std::function<void()> told)
      : plan_(plan), gate_(gate), told_(std::move(told)) {}

  void begin(HostTime origin) { origin_ = last_ = origin; }

  /// Marks a kIteration or kEnd step. The first iteration lasts from the origin on. True: the job
  /// has reached its iterations.
  [[nodiscard]] bool mark(const program::Step& step, HostTime now);

  /// A service's pass for `requests` requests has ended.
  void pass(HostTime start, HostTime end, std::uint64_t requests);

  /// Moves the noted ends into the record.
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
  ReplayThread(const ReplayThreadSetup& setup, std::uint32_t index);

  /// Does all steps once; the first one's think time counts from `begin`. Device operations last
  /// `factor` times their own time. False: told to stop.
  [[nodiscard]] bool run_pass(HostTime begin, double factor);

  /// The end of the last finished step.
  [[nodiscard]] HostTime last_end() const { return last_end_; }
  [[nodiscard]] const LaunchCosts& costs() const { return costs_; }

 private:
  [[nodiscard]] bool think(const program::Step& step);
  [[nodiscard]] bool call(const program::Step& step);
  [[nodiscard]] HostTime wait(const program::Step& step, const program::Awaited& awaited,
                              HostTime start, HostTime call_end);
  void wait_in_device(const program::Awaited& awaited);
  void end_step(std::size_t step);
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
