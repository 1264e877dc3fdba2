// What a policy is told of a launch call, put together from the operations that it launches: the
// same sums for a simulated GPU and for a job that is replayed on a real one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

/// CUDA C++ Programming Guide, "SIMT Architecture".
inline constexpr std::uint32_t kWarpThreads = 32;

/// A kernel of a launch call, as whoever launches it knows it.
struct LaunchedKernel {
  std::uint64_t kernel = 0;  ///< LaunchInfo::kernel
  std::uint64_t blocks = 0;
  std::uint32_t warps = 0;        ///< of a block
  std::uint64_t sm_blocks = 0;    ///< LaunchInfo::sm_blocks
  KernelClass bound = KernelClass::kUnknown;
};

/// A name and a form of a program are a kernel of its client's.
[[nodiscard]] constexpr std::uint64_t kernel_id(std::uint32_t name, std::uint32_t form) {
  return std::uint64_t{name} << 32U | form;
}

/// Blocks add up over the call's kernels; what else a kernel is, is that of the first with blocks.
inline void add_kernel(LaunchInfo& launch, const LaunchedKernel& kernel) {
  if (launch.blocks == 0) {
    launch.kernel = kernel.kernel;
    launch.sm_blocks = kernel.sm_blocks;
    launch.bound = kernel.bound;
  }
  launch.blocks += kernel.blocks;
  launch.threads_per_block = std::max(launch.threads_per_block, kernel.warps * kWarpThreads);
}

}  // namespace bubblesim::policy
