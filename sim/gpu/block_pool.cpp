#include "sim/gpu/block_pool.hpp"

namespace bubblesim::gpu {

BlockPool::BlockPool(const hardware::GpuSpec& spec)
    : total_{std::uint64_t{spec.sm.max_warps} * spec.sm_count,
             std::uint64_t{spec.sm.registers} * spec.sm_count,
             spec.sm.shared_memory_bytes * spec.sm_count,
             std::uint64_t{spec.sm.max_blocks} * spec.sm_count},
      sm_count_(spec.sm_count) {}

// Who holds more than there is holds everything.
BlockResources BlockPool::left_by(const BlockResources& held) const {
  BlockResources left;
  left.warps = total_.warps - std::min(total_.warps, held.warps);
  left.registers = total_.registers - std::min(total_.registers, held.registers);
  left.shared_memory_bytes =
      total_.shared_memory_bytes - std::min(total_.shared_memory_bytes, held.shared_memory_bytes);
  left.slots = total_.slots - std::min(total_.slots, held.slots);
  return left;
}

std::uint64_t BlockPool::fits_beside_others(ClientId client, const program::Residency& needs,
                                            std::uint64_t own, std::uint64_t most) const {
  const BlockResources left = left_by(all_held_ - held_[client.index()]);
  const std::uint64_t room = fits_in(left, needs, own + most);
  return room > own ? room - own : 0;
}

// Mostly all fit, which takes no division to see.
std::uint64_t BlockPool::fits_in(const BlockResources& left, const program::Residency& needs,
                                 std::uint64_t most) const {
  std::uint64_t blocks = std::min({most, needs.blocks_per_sm * sm_count_, left.slots});
  if (needs.warps * blocks > left.warps) blocks = left.warps / needs.warps;
  if (needs.registers * blocks > left.registers) blocks = left.registers / needs.registers;
  if (needs.shared_memory_bytes * blocks > left.shared_memory_bytes) {
    blocks = left.shared_memory_bytes / needs.shared_memory_bytes;
  }
  return blocks;
}

}  // namespace bubblesim::gpu
