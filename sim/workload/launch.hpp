// A running program's events for the rest of the simulator: launches before they go to the driver,
// operations as they end, iterations and passes.
#pragma once

#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/program/program.hpp"

namespace bubblesim::workload {

class ProgramRun;

/// A launch call of a host thread; `count` operations from `first` on (several: a CUDA graph).
struct LaunchCall {
  ProgramRun* run = nullptr;
  std::uint32_t thread = 0;
  std::uint32_t first = 0;  ///< into the program's ops
  std::uint32_t count = 0;
  std::uint64_t number = 0;  ///< counts the run's launch calls, from 1 on
};

/// Decides on each launch before it reaches the driver, as an interposed launch function does.
class LaunchGate {
 public:
  virtual ~LaunchGate() = default;
  /// True: the launch goes on. False: the thread is held inside the call until
  /// ProgramRun::resume(call.thread).
  virtual bool may_launch(const LaunchCall& call, SimTime now) = 0;
};

/// An operation that has ended.
struct OpRecord {
  ProgramRun* run = nullptr;
  std::uint32_t op = 0;
  std::uint64_t launch = 0;  ///< LaunchCall::number of the call that launched it
  SimTime start{};  ///< first blocks resident
  SimTime end{};
};

/// A finished step of a host thread, with the times between which the thread was inside the call.
/// The observer gets the steps of a thread in order, pass after pass.
struct HostCallRecord {
  ProgramRun* run = nullptr;
  std::uint32_t thread = 0;
  std::uint32_t step = 0;  ///< into the thread's steps
  SimTime start{};
  SimTime end{};  ///< may be later than now
};

/// Watches a run. The default implementation of each call does nothing.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// The marked thread begins iteration `index` of the pass, or has ended the pass's last iteration
  /// (index == iterations).
  virtual void on_iteration(ProgramRun& /*run*/, std::uint32_t /*index*/, SimTime /*now*/) {}
  virtual void on_op_started(ProgramRun& /*run*/, std::uint32_t /*op*/, SimTime /*now*/) {}
  /// A started operation stands still, because another context has the GPU. It resumes later.
  virtual void on_op_paused(ProgramRun& /*run*/, std::uint32_t /*op*/, SimTime /*now*/) {}
  virtual void on_op_resumed(ProgramRun& /*run*/, std::uint32_t /*op*/, SimTime /*now*/) {}
  virtual void on_op_finished(const OpRecord& /*record*/) {}
  virtual void on_host_call(const HostCallRecord& /*record*/) {}
  /// Repeat::kOnePass only: all threads are done and the device is idle. The observer may start the
  /// next pass.
  virtual void on_pass_finished(ProgramRun& /*run*/, SimTime /*now*/) {}
};

}  // namespace bubblesim::workload
