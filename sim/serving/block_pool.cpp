#include "sim/serving/block_pool.hpp"

#include "sim/base/check.hpp"

namespace bubblesim::serving {

// The list of free blocks is a ring through an entry of its own, behind the blocks.
BlockPool::BlockPool(std::uint32_t blocks) : blocks_(blocks + 1), ring_(blocks) {
  blocks_[ring_].previous = blocks_[ring_].next = ring_;
  for (BlockIndex block = 0; block < blocks; ++block) append_free(block);
  known_.reserve(blocks);
}

BlockIndex BlockPool::take() {
  BUBBLESIM_DCHECK(free_ > 0, "a block is taken from an empty pool");
  const BlockIndex block = blocks_[ring_].next;
  unlink(block);
  Block& taken = blocks_[block];
  if (taken.key != 0) known_.erase(taken.key);
  taken.key = 0;
  taken.holders = 1;
  return block;
}

std::optional<BlockIndex> BlockPool::find(BlockKey key) const {
  const auto found = known_.find(key);
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

void BlockPool::share(BlockIndex block) {
  if (blocks_[block].holders++ == 0) unlink(block);
}

void BlockPool::remember(BlockIndex block, BlockKey key) {
  if (known_.emplace(key, block).second) blocks_[block].key = key;
}

void BlockPool::release(const std::vector<BlockIndex>& blocks) {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    if (--blocks_[*block].holders == 0) append_free(*block);
  }
}

void BlockPool::append_free(BlockIndex block) {
  const BlockIndex newest = blocks_[ring_].previous;
  blocks_[block].previous = newest;
  blocks_[block].next = ring_;
  blocks_[newest].next = block;
  blocks_[ring_].previous = block;
  ++free_;
}

void BlockPool::unlink(BlockIndex block) {
  const Block& leaving = blocks_[block];
  blocks_[leaving.previous].next = leaving.next;
  blocks_[leaving.next].previous = leaving.previous;
  --free_;
}

}  // namespace bubblesim::serving
