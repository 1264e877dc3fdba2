// A GPU as one process of a rig sees it: streams that take operations in order, and waits. CUDA
// behind it, or a fake device (fake/).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// One execution of an operation. `launch`: the number of the launch call in the job, by JobRunner.
struct OpInstance {
  std::uint32_t op = 0;
  std::uint64_t pass = 0;
  std::uint64_t launch = 0;
};

/// Hears of operations as the host learns of them, by one thread at a time. Times are those of the
/// device's own record on the rig's clock.
class DeviceListener {
 public:
  virtual ~DeviceListener() = default;
  virtual void on_started(const OpInstance& op, HostTime start) = 0;
  virtual void on_finished(const OpInstance& op, HostTime start, HostTime end) = 0;
};

/// How one job uses the device.
struct DeviceJob {
  const JobPlan* plan = nullptr;       ///< outlives the device
  DeviceListener* listener = nullptr;  ///< null: no listener, which is cheaper
  std::function<void(const std::string&)> progress;  ///< may be empty
};

/// Where the time of the host's calls comes from.
enum class HostCosts : std::uint8_t {
  kOwn,      ///< the hardware: program::Step::cost and return_lag are ignored
  kPlanned,  ///< the plan's: calls of a fake device take no time; JobRunner sleeps for them
};

class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual HostCosts host_costs() const { return HostCosts::kOwn; }

  /// Gets ready to launch: memory, streams, stand-ins fitted to the plan's durations. Fault: a
  /// request that the device cannot meet, with the operation's name.
  [[nodiscard]] virtual Result<void> prepare(const DeviceJob& job) = 0;

  /// Called at most once, shortly before the job's first launch: measures again what changes with
  /// time, such as clocks. close() reports its faults.
  virtual void settle() {}

  /// Puts operations [first.op, first.op + count) on their streams, after their edges; each lasts
  /// `factor` times its solo time. Called by host threads of the job; returns when the launch call
  /// would; kPlanned: at once, or when there is room in the stream's launch queue, in which a call
  /// takes a place if its `cost` (program::Step::cost) is not 0.
  virtual void launch(const OpInstance& first, std::uint32_t count, double factor,
                      Duration cost) = 0;

  /// Each blocks the calling thread. wait_op: until the operation has ended pass + 1 times; it was
  /// launched as often.
  virtual void wait_op(std::uint32_t op, std::uint64_t pass) = 0;
  virtual void wait_stream(std::uint32_t stream) = 0;
  virtual void wait_all() = 0;

  /// Blocks of the operation's kernel that the device holds at once; 0: not known.
  [[nodiscard]] virtual std::uint64_t resident_blocks(std::uint32_t op) const = 0;

  /// Operations that have been launched and have not ended, as far as the host knows.
  [[nodiscard]] virtual std::uint64_t in_flight() const = 0;

  /// Stops launching: later launches do nothing, also one that waits for room. Operations that
  /// depend on an operation never launched do not run, and no call waits for them. Called by any
  /// thread, also while others are inside launch() or a wait; a second call does nothing. The
  /// default is for devices on which no operation depends on another.
  virtual void end_launches() {}

  /// Waits for launched operations and releases everything. A device that no longer answers is a
  /// fault; problems of stand-ins are in counters().
  [[nodiscard]] virtual Result<void> close() = 0;
  [[nodiscard]] virtual CounterSet counters() const = 0;
};

}  // namespace bubblesim::capture
