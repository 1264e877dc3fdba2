#include "sim/gpu/block_pool.hpp"

#include <algorithm>

namespace bubblesim::gpu {

BlockPool::BlockPool(const hardware::GpuSpec& spec)
    : warps_(std::uint64_t{spec.sm.max_warps} * spec.sm_count),
      registers_(std::uint64_t{spec.sm.registers} * spec.sm_count),
      shared_memory_(spec.sm.shared_memory_bytes * spec.sm_count),
      slots_(std::uint64_t{spec.sm.max_blocks} * spec.sm_count),
      sm_count_(spec.sm_count) {}

std::uint64_t BlockPool::fits(const Residency& needs) const {
  const std::uint64_t alone = needs.blocks_per_sm * sm_count_;
  if (resident_ == 0) return alone;  // the common case, without a division
  std::uint64_t blocks = std::min(alone, slots_);
  if (needs.warps > 0) blocks = std::min(blocks, warps_ / needs.warps);
  if (needs.registers > 0) blocks = std::min(blocks, registers_ / needs.registers);
  if (needs.shared_memory_bytes > 0) {
    blocks = std::min(blocks, shared_memory_ / needs.shared_memory_bytes);
  }
  return blocks;
}

void BlockPool::take(const Residency& needs, std::uint64_t blocks) {
  warps_ -= needs.warps * blocks;
  registers_ -= needs.registers * blocks;
  shared_memory_ -= needs.shared_memory_bytes * blocks;
  slots_ -= blocks;
  resident_ += blocks;
}

void BlockPool::give(const Residency& needs, std::uint64_t blocks) {
  warps_ += needs.warps * blocks;
  registers_ += needs.registers * blocks;
  shared_memory_ += needs.shared_memory_bytes * blocks;
  slots_ += blocks;
  resident_ -= blocks;
}

}  // namespace bubblesim::gpu
