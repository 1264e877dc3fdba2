#include "sim/gpu/block_pool.hpp"

namespace bubblesim::gpu {

BlockPool::BlockPool(const hardware::GpuSpec& spec)
    : warps_(std::uint64_t{spec.sm.max_warps} * spec.sm_count),
      registers_(std::uint64_t{spec.sm.registers} * spec.sm_count),
      shared_memory_(spec.sm.shared_memory_bytes * spec.sm_count),
      slots_(std::uint64_t{spec.sm.max_blocks} * spec.sm_count),
      sm_count_(spec.sm_count) {}

std::uint64_t BlockPool::left_for(const Residency& needs) const {
  std::uint64_t blocks = slots_;
  if (needs.warps > 0) blocks = std::min(blocks, warps_ / needs.warps);
  if (needs.registers > 0) blocks = std::min(blocks, registers_ / needs.registers);
  if (needs.shared_memory_bytes > 0) {
    blocks = std::min(blocks, shared_memory_ / needs.shared_memory_bytes);
  }
  return blocks;
}

}  // namespace bubblesim::gpu
