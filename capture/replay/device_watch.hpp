// What a job does when it hears of its operations: tells the gate of completions and bubbles,
// writes operations down, lets those go on who wait for room.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "capture/gate/gate_client.hpp"
#include "capture/replay/device.hpp"
#include "capture/replay/host_signals.hpp"
#include "capture/replay/job_plan.hpp"
#include "capture/replay/job_record.hpp"
#include "sim/policy/session/bubble_watch.hpp"

namespace bubblesim::capture {

class LaunchPath;

class DeviceWatch final : public DeviceListener {
 public:
  /// All outlive it; `gate` may be null, `progress` empty.
  DeviceWatch(const JobPlan& plan, GateClient* gate, HostSignals& signals,
              const std::function<void()>& progress)
      : plan_(plan), gate_(gate), signals_(signals), progress_(progress), bubbles_(plan.bubbles) {}

  /// Whether anything that the plan asks for needs to hear of operations.
  [[nodiscard]] static bool is_needed(const JobPlan& plan, const GateClient* gate);

  /// Before the first launch: instants are since `origin`.
  void begin(HostTime origin) { origin_ = origin; }

  void on_started(const OpInstance& op, HostTime start) override;
  void on_finished(const OpInstance& op, HostTime start, HostTime end) override;

  /// After Device::close(). `path` knows the launch calls.
  [[nodiscard]] std::vector<OperationRecord> take_operations(const LaunchPath& path);

 private:
  const JobPlan& plan_;
  GateClient* gate_;
  HostSignals& signals_;
  const std::function<void()>& progress_;
  HostTime origin_{};
  policy::BubbleWatch bubbles_;
  std::vector<OperationRecord> operations_;
  std::vector<std::uint64_t> launches_;  ///< of operations_
};

}  // namespace bubblesim::capture
