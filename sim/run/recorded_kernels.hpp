// Kernel times of a server's steps from a file of recorded ones (bubblesim.steps).
#pragma once

#include <string>

#include "sim/base/result.hpp"
#include "sim/run/measured_kernels.hpp"

namespace bubblesim::run {

/// Faults: the first one of the file.
[[nodiscard]] Result<MeasuredKernels> load_recorded_kernels(const std::string& path,
                                                            const synth::ServerPlan& plan);

}  // namespace bubblesim::run
