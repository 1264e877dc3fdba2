// How long a filler's program takes on a GPU of its own.
#pragma once

#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/program.hpp"

namespace bubblesim::run {

/// One pass, from its first call to the end of its last operation and call. 0: it never ends.
[[nodiscard]] Duration measure_pass(const program::Program& program,
                                    const hardware::GpuSpec& device);

}  // namespace bubblesim::run
