// The way of a launch call: window, gate, device. Describes the call to the policy by the same sums
// as the simulator (sim/policy/session/launch_description.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "capture/gate/gate_client.hpp"
#include "capture/replay/device.hpp"
#include "capture/replay/host_signals.hpp"
#include "capture/replay/job_plan.hpp"

namespace bubblesim::capture {

/// The times that a thread's launches spent before the device.
struct LaunchCosts {
  std::uint64_t launches = 0;
  Duration gate{};  ///< without holds
  Duration held{};
};

class LaunchPath {
 public:
  /// All outlive it; `gate` may be null. The device is prepared.
  LaunchPath(const JobPlan& plan, Device& device, GateClient* gate, HostSignals& signals);

  /// Launches the operations of the step. False: told to stop, nothing launched. A launch waits for
  /// room in the window first and then asks the policy, so that the verdict is acted on at once.
  [[nodiscard]] bool launch(const program::Step& step, std::uint64_t pass, double factor,
                            LaunchCosts& costs);

  /// Waits until the operation has been launched pass + 1 times. False: told to stop.
  [[nodiscard]] bool await_launch(std::uint32_t op, std::uint64_t pass);

  /// When a launch call began and ended: after the last launch, if JobPlan::record_operations.
  struct Call {
    HostTime start{};
    HostTime end{};
  };
  [[nodiscard]] Call call(std::uint64_t launch) const;

  /// A policy's view of a launch of these operations, without client and number.
  [[nodiscard]] static policy::LaunchInfo describe(const JobPlan& plan, const Device& device,
                                                   std::uint32_t first, std::uint32_t count);

 private:
  void describe_all();
  [[nodiscard]] bool await_window();
  [[nodiscard]] std::uint64_t number_launch();
  void record(std::uint64_t launch, const Call& call);
  [[nodiscard]] HostTime call_end(const program::Step& step) const;

  const JobPlan& plan_;
  Device& device_;
  GateClient* gate_;
  HostSignals& signals_;
  std::vector<policy::LaunchInfo> infos_;         ///< of the job's launches
  std::vector<std::uint32_t> info_of_op_;         ///< by first operation; with a gate only
  std::vector<std::atomic<std::uint64_t>> launched_;  ///< number of launches, by operation
  std::atomic<std::uint64_t> ungated_launches_{0};
  std::mutex mutex_;                              ///< of calls_
  std::unordered_map<std::uint64_t, Call> calls_;  ///< by launch
};

}  // namespace bubblesim::capture
