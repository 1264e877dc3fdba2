// Which efficiency file goes with a device.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"

namespace bubblesim::synth {

/// The file of the device in `configs`/devices that has the name of `gpu`: so a device file of
/// one's own (calibrated, say) has the kernel times of the device that it describes. Fault: there
/// is none.
[[nodiscard]] CheckedResult<model::Efficiency> device_efficiency(const hardware::GpuSpec& gpu,
                                                                 const std::string& configs);

/// As above, but a file of the name that the device was asked for by, an id or a path, comes first.
[[nodiscard]] CheckedResult<model::Efficiency> device_efficiency(std::string_view asked,
                                                                 const hardware::GpuSpec& gpu,
                                                                 const std::string& configs);

}  // namespace bubblesim::synth
