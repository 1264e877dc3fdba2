// The devices that there are, by address.
#pragma once

#include <memory>
#include <string>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/device.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// "cuda:INDEX", or "fake:NAME" (FakeGpu::begin). Fault: no such device, no driver, no stand-in
/// kernels in this build. `clock` outlives the device. `fits`: the file in which a real GPU's fits
/// of stand-ins are kept from process to process; empty: each makes its own. `whole_gpu` false:
/// this process has a part of the GPU, and can only use fits that are in the file.
[[nodiscard]] Result<std::unique_ptr<Device>> open_device(const std::string& address,
                                                          HostClock& clock, ClientId client,
                                                          const std::string& fits = {},
                                                          bool whole_gpu = true);

}  // namespace bubblesim::capture
