#include "sim/program/kernel_profile.hpp"

#include <algorithm>

#include "sim/base/divide.hpp"

namespace bubblesim::program {
namespace {

constexpr std::uint64_t round_up(std::uint64_t a, std::uint64_t unit) {
  return divide_up(a, std::max<std::uint64_t>(unit, 1)) * std::max<std::uint64_t>(unit, 1);
}

// Registers are handed out per warp, and each of an SM's partitions (as many as the warp
// allocation unit) holds whole warps only: cuda_occupancy.h of the CUDA Toolkit, register limit.
std::uint64_t blocks_by_registers(std::uint64_t warps, std::uint64_t registers_per_warp,
                                  const hardware::SmSpec& sm) {
  const std::uint64_t partitions = std::max<std::uint32_t>(sm.warp_allocation_unit, 1);
  const std::uint64_t warps_held = sm.registers / registers_per_warp / partitions * partitions;
  return warps_held / warps;
}

struct Shares {
  double dram;
  double issue;
};

Shares class_shares(KernelClass kernel_class, const hardware::ContentionSpec& spec) {
  switch (kernel_class) {
    case KernelClass::kCompute:
      return {spec.compute_kernel_dram_share, spec.compute_kernel_issue_share};
    case KernelClass::kMemory:
      return {spec.memory_kernel_dram_share, spec.memory_kernel_issue_share};
    case KernelClass::kUnknown: break;
  }
  return {spec.unknown_kernel_dram_share, spec.unknown_kernel_issue_share};
}

}  // namespace

double dram_share(double bytes, Duration time, const hardware::GpuSpec& gpu) {
  const double most = to_seconds(time) * gpu.dram_bandwidth.value * gpu.dram_reach;
  return bytes < most ? bytes / most : bytes > 0 ? 1 : 0;
}

Residency residency_of(const LaunchNeeds& needs, const hardware::SmSpec& sm) {
  const std::uint64_t threads = std::max<std::uint32_t>(needs.threads_per_block, 1);
  const std::uint64_t warps = divide_up(threads, std::max<std::uint32_t>(sm.warp_size, 1));
  const std::uint64_t registers_per_warp =
      round_up(std::uint64_t{needs.registers_per_thread} * sm.warp_size, sm.register_unit);
  const std::uint64_t shared_memory = round_up(
      needs.shared_memory_per_block + sm.shared_memory_reserved_bytes, sm.shared_memory_unit_bytes);

  std::uint64_t blocks = std::min<std::uint64_t>(sm.max_blocks, sm.max_warps / warps);
  blocks = std::min<std::uint64_t>(blocks, sm.max_threads / threads);
  if (registers_per_warp > 0) {
    blocks = std::min(blocks, blocks_by_registers(warps, registers_per_warp, sm));
  }
  if (shared_memory > 0) blocks = std::min(blocks, sm.shared_memory_bytes / shared_memory);

  return {
      .warps = static_cast<std::uint32_t>(std::min<std::uint64_t>(warps, sm.max_warps)),
      .registers = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(registers_per_warp * warps, sm.registers)),
      .shared_memory_bytes = std::min(shared_memory, sm.shared_memory_bytes),
      .blocks_per_sm = static_cast<std::uint32_t>(std::max<std::uint64_t>(blocks, 1)),
  };
}

KernelProfile profile_kernel(const LaunchNeeds& needs, KernelClass kernel_class,
                             const hardware::GpuSpec& spec) {
  const Shares shares = class_shares(kernel_class, spec.contention);
  const std::uint64_t blocks = std::max<std::uint64_t>(needs.blocks, 1);
  const double sms_touched =
      std::min(1.0, static_cast<double>(blocks) / std::max<std::uint32_t>(spec.sm_count, 1));
  return {
      .blocks = blocks,
      .residency = residency_of(needs, spec.sm),
      .kernel_class = kernel_class,
      .dram_share = std::clamp(shares.dram * sms_touched, 0.0, 1.0),
      .issue_share = std::clamp(shares.issue, 0.0, 1.0),
  };
}

}  // namespace bubblesim::program
