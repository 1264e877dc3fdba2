// How long a kernel takes on a GPU, and how it is launched: a roofline with an efficiency curve
// for each kind of kernel, fitted to measured kernels (`bubblesim fit`).
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/kernel_work.hpp"

namespace bubblesim::model {

/// A kernel as launched.
struct Launch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint16_t registers_per_thread = 0;
  std::uint32_t shared_memory_bytes = 0;  ///< a block
};

struct KernelTime {
  Duration duration{};       ///< alone on the GPU, rounded to the nearest nanosecond, >= 1
  Launch launch;
  bool memory_bound = false;  ///< the memory side of the roofline is the longer one
};

/// The time of `work` alone on `gpu`.
[[nodiscard]] KernelTime time_kernel(const KernelWork& work, const hardware::GpuSpec& gpu,
                                     const Efficiency& efficiency);

}  // namespace bubblesim::model
