// What a trace says of the GPU that a rank ran on, taken from a device's spec.
#pragma once

#include "sim/hardware/gpu_spec.hpp"
#include "traces/trace.hpp"

namespace bubblesim::synth {

[[nodiscard]] traces::DeviceInfo device_info(const hardware::GpuSpec& spec);

}  // namespace bubblesim::synth
