// What the rest of the simulator sees of a running program: launches before they go to the
// driver, operations as they end, iterations and passes.
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
  std::uint64_t number = 0;  ///< of the run's launch calls, from 1 on
};

/// Stands before the driver, as an interposed launch function does.
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

/// A step of a host thread that is done: the thread was inside the call from start to end. Each
/// thread's steps come in order, pass after pass.
struct HostCallRecord {
  ProgramRun* run = nullptr;
  std::uint32_t thread = 0;
  std::uint32_t step = 0;  ///< into the thread's steps
  SimTime start{};
  SimTime end{};  ///< may lie ahead
};

/// Watches a run. The default implementation of each call does nothing.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// The marked thread begins iteration `index` of the pass, or has ended the pass's last one
  /// (index == iterations).
  virtual void on_iteration(ProgramRun& /*run*/, std::uint32_t /*index*/, SimTime /*now*/) {}
  virtual void on_op_started(ProgramRun& /*run*/, std::uint32_t /*op*/, SimTime /*now*/) {}
  /// A started operation stands still, since another context has the GPU; it goes on.
  virtual void on_op_paused(ProgramRun& /*run*/, std::uint32_t /*op*/, SimTime /*now*/) {}
  virtual void on_op_resumed(ProgramRun& /*run*/, std::uint32_t /*op*/, SimTime /*now*/) {}
  virtual void on_op_finished(const OpRecord& /*record*/) {}
  virtual void on_host_call(const HostCallRecord& /*record*/) {}
  /// kOnePass: all threads are done and the device has finished. May start the next pass.
  virtual void on_pass_finished(ProgramRun& /*run*/, SimTime /*now*/) {}
};

}  // namespace bubblesim::workload
