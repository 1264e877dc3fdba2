// How long a kernel takes on a GPU, and how it is launched: a roofline with an efficiency curve
// for each kind of kernel, fitted to measured kernels (`scripts/fit`).
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

/// Whether a product's blocks stay on their SMs and take tile after tile, so that it can be told to
/// leave some of the SMs to others.
[[nodiscard]] bool blocks_stay(const KernelWork& work, const hardware::GpuSpec& gpu);

/// The time of `work` alone on `gpu`. Products whose blocks stay leave `sm_carveout` SMs free:
/// fewer than `gpu` has (torch._C._set_sm_carveout_experimental, pytorch/pytorch pull 147966).
[[nodiscard]] KernelTime time_kernel(const KernelWork& work, const hardware::GpuSpec& gpu,
                                     const Efficiency& efficiency, std::uint32_t sm_carveout = 0);

}  // namespace bubblesim::model
