// The properties of a kernel that the GPU model uses besides its duration: computed once for each
// distinct launch shape and class on a device, shared by all launches with that shape and class.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kinds.hpp"

namespace bubblesim::program {

/// A kernel's launch as recorded.
struct LaunchNeeds {
  std::uint64_t blocks = 1;
  std::uint32_t threads_per_block = 1;
  std::uint32_t registers_per_thread = 0;
  std::uint64_t shared_memory_per_block = 0;
};

/// The part of an SM that one resident block occupies, after CUDA's rounding.
struct Residency {
  std::uint32_t warps = 0;
  std::uint32_t registers = 0;
  std::uint64_t shared_memory_bytes = 0;
  std::uint32_t blocks_per_sm = 1;  ///< the most blocks that an empty SM holds; >= 1
};

struct KernelProfile {
  std::uint64_t blocks = 1;
  Residency residency;
  KernelClass kernel_class = KernelClass::kUnknown;
  /// DRAM bandwidth of the kernel alone at full residency, as a share of the attainable bandwidth
  /// (GpuSpec::dram_reach); [0, 1].
  double dram_share = 0;
  double issue_share = 0;  ///< of the issue slots of the SMs it sits on; [0, 1]
};

/// KernelProfile::dram_share of a kernel that moves `bytes` in `time`.
[[nodiscard]] double dram_share(double bytes, Duration time, const hardware::GpuSpec& gpu);

/// The CUDA occupancy rules: blocks an SM holds, limited by warps, registers, shared memory and
/// block slots (CUDA C++ Programming Guide, "Occupancy"; rounding units by compute capability).
/// A block larger than an SM is counted as one per SM.
[[nodiscard]] Residency residency_of(const LaunchNeeds& needs, const hardware::SmSpec& sm);

/// Residency and contention shares of a kernel on a device.
[[nodiscard]] KernelProfile profile_kernel(const LaunchNeeds& needs, KernelClass kernel_class,
                                           const hardware::GpuSpec& spec);

}  // namespace bubblesim::program
