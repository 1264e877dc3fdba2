// A fake GPU for tests and for machines without a GPU: the simulator's GPU model behind the shared
// memory of a rig's processes.
#pragma once

#include <memory>
#include <optional>

#include "capture/rig/rig.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"

namespace bubblesim::measure {

/// The device stops answering this client, `at` after FakeGpu::begin().
struct FakeJobStall {
  ClientId client;
  Duration at{};
};

/// The device stands still for `length`, from `at` after FakeGpu::begin() on.
struct FakeDeviceStall {
  Duration at{};
  Duration length{};
};

/// Faults of a fake GPU; for tests.
struct FakeGpuFaults {
  std::optional<FakeJobStall> job_stall;
  std::optional<FakeDeviceStall> device_stall;
  Duration late_notices{};  ///< delay with which hosts hear of each operation's end
};

/// A GPU of this kind. One run at a time: begin(), run() in a thread, stop(). It needs a TurnClock,
/// in which the thread of run() takes part with Turn::kDevice.
[[nodiscard]] std::unique_ptr<capture::FakeGpu> make_fake_gpu(const hardware::GpuSpec& spec,
                                                              const FakeGpuFaults& faults = {});

}  // namespace bubblesim::measure
