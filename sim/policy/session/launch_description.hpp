// Describes a launch call to a policy, from the operations that the call launches. A simulated GPU
// and a job replayed on a real one share this code.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/policy/policy.hpp"
#include "sim/program/program.hpp"

namespace bubblesim::policy {

/// CUDA C++ Programming Guide, "SIMT Architecture".
inline constexpr std::uint32_t kWarpThreads = 32;

/// A kernel of a launch call, as the launching side knows it.
struct LaunchedKernel {
  std::uint64_t blocks = 0;
  std::uint32_t warps = 0;      ///< of a block
  std::uint64_t sm_blocks = 0;  ///< LaunchInfo::sm_blocks
  KernelClass bound = KernelClass::kUnknown;
};

/// Describes the launch of `count` operations from `first` on, at least one; the caller adds client
/// and number. `kernel_of` gives the LaunchedKernel of an operation's index; it is called for
/// kernels with a profile. Blocks add up over the call's kernels, durations over its operations;
/// threads_per_block is the largest of the kernels; the other fields are those of the first kernel
/// with blocks. A kernel is identified by its name and profile in the client's program.
template <class KernelOf>
[[nodiscard]] LaunchInfo describe_launch(const program::Program& program, std::uint32_t first,
                                         std::uint32_t count, const KernelOf& kernel_of) {
  LaunchInfo launch;
  launch.kind = program.ops[first].kind;
  launch.operations = count;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const program::Op& op = program.ops[i];
    launch.profiled += op.duration;
    if (!program::is_kernel(op.kind) || op.profile == program::kNoIndex) continue;
    const LaunchedKernel kernel = kernel_of(i);
    if (launch.blocks == 0) {
      launch.kernel = std::uint64_t{op.name.value} << 32U | op.profile;
      launch.sm_blocks = kernel.sm_blocks;
      launch.bound = kernel.bound;
    }
    launch.blocks += kernel.blocks;
    launch.threads_per_block = std::max(launch.threads_per_block, kernel.warps * kWarpThreads);
  }
  return launch;
}

}  // namespace bubblesim::policy
