// Inside of gpu_spec_file: the constants of one device file.
#pragma once

#include "sim/base/json_reader.hpp"
#include "sim/hardware/gpu_spec_file.hpp"

namespace bubblesim::hardware {

/// Reads every constant; faults go to the reader's error list. Ends with root.finish().
[[nodiscard]] DeviceFile read_constants(ObjectReader& root);

}  // namespace bubblesim::hardware
