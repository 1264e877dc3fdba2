#include "sim/serving/block_pool.hpp"

#include "sim/base/check.hpp"
#include "sim/base/hash.hpp"

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

namespace {

enum class Owner : std::uint64_t { kRequest = 1, kConversation = 2, kHash = 3 };

BlockKey key(Owner owner, std::uint64_t id, std::uint32_t block) {
  const std::uint64_t owner_key = splitmix64(id + splitmix64(static_cast<std::uint64_t>(owner)));
  const BlockKey found = splitmix64(owner_key + block + 1);
  return found == 0 ? 1 : found;
}

}  // namespace

double uniform_of(std::uint64_t seed, std::uint64_t request, std::uint64_t place) {
  const std::uint64_t bits = splitmix64(splitmix64(splitmix64(seed + 1) + request) + place);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

BlockKey block_key(const Request& request, std::uint64_t life, std::uint32_t block,
                   std::uint32_t block_size) {
  const SharedPrefix& prefix = request.prefix;
  if (prefix.conversation) return key(Owner::kConversation, *prefix.conversation, block);
  const std::uint64_t end = (std::uint64_t{block} + 1) * block_size;
  if (prefix.tokens_per_hash > 0 && end <= request.prompt_tokens) {
    const std::uint64_t hash = (end - 1) / prefix.tokens_per_hash;
    if (hash < prefix.hashes.size()) return key(Owner::kHash, prefix.hashes[hash], block);
  }
  return key(Owner::kRequest, life, block);
}

}  // namespace bubblesim::serving
