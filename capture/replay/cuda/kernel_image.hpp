// The stand-in kernels as nvcc made them, inside this library; empty if the build had no nvcc.
#pragma once

#include <cstddef>
#include <span>

namespace bubblesim::capture::cuda {

/// A fat binary of stand_in_kernels.cu: sm_80, sm_90, and PTX of compute_80 for all others.
[[nodiscard]] std::span<const std::byte> kernel_image();

}  // namespace bubblesim::capture::cuda
