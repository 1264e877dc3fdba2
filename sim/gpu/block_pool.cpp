#include "sim/gpu/block_pool.hpp"

namespace bubblesim::gpu {

BlockPool::BlockPool(const hardware::GpuSpec& spec)
    : total_{std::uint64_t{spec.sm.max_warps} * spec.sm_count,
             std::uint64_t{spec.sm.registers} * spec.sm_count,
             spec.sm.shared_memory_bytes * spec.sm_count,
             std::uint64_t{spec.sm.max_blocks} * spec.sm_count},
      sm_count_(spec.sm_count) {}

void BlockPool::subtract(BlockResources& from, const BlockResources& held) {
  from.warps -= std::min(from.warps, held.warps);
  from.registers -= std::min(from.registers, held.registers);
  from.shared_memory_bytes -= std::min(from.shared_memory_bytes, held.shared_memory_bytes);
  from.slots -= std::min(from.slots, held.slots);
}

BlockResources BlockPool::left() const {
  BlockResources left = total_;
  for (const BlockResources& held : held_) subtract(left, held);
  return left;
}

std::uint64_t BlockPool::fits_beside_others(ClientId client, const Residency& needs,
                                            std::uint64_t own) const {
  BlockResources left = total_;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (i != client.index()) subtract(left, held_[i]);
  }
  const std::uint64_t room = std::min(needs.blocks_per_sm * sm_count_, left_for(needs, left));
  return room > own ? room - own : 0;
}

std::uint64_t BlockPool::left_for(const Residency& needs, const BlockResources& left) {
  std::uint64_t blocks = left.slots;
  if (needs.warps > 0) blocks = std::min(blocks, left.warps / needs.warps);
  if (needs.registers > 0) blocks = std::min(blocks, left.registers / needs.registers);
  if (needs.shared_memory_bytes > 0) {
    blocks = std::min(blocks, left.shared_memory_bytes / needs.shared_memory_bytes);
  }
  return blocks;
}

}  // namespace bubblesim::gpu
