// Re-targeting of recorded kernels: how much longer a kernel takes on another GPU, when all that
// is known of it is what bounds it.
//
//   compute   ratio of the sustained FLOP/s in `precision`: peak x gemm math share
//   memory    ratio of the sustained bandwidths: DRAM bandwidth x elementwise share
//   unknown   geometric mean of the two
//
// What does not scale (the fixed time of small kernels, waves that fill one device and not the
// other) is not in the ratio: the ratio extrapolates, and results that use it say so.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/kernel_work.hpp"

namespace bubblesim::model {

enum class BoundBy : std::uint8_t { kCompute, kMemory, kUnknown };

/// A GPU with the constants of its kernels; borrows both.
struct TimedDevice {
  const hardware::GpuSpec& gpu;
  const Efficiency& efficiency;
};

/// Duration on `to` divided by duration on `from`.
[[nodiscard]] double roofline_ratio(BoundBy bound, Precision precision, const TimedDevice& from,
                                    const TimedDevice& to);

/// That ratio for a kernel whose work is known: both times from time_kernel.
[[nodiscard]] double roofline_ratio(const KernelWork& work, const TimedDevice& from,
                                    const TimedDevice& to);

}  // namespace bubblesim::model
