// The paged KV cache: blocks, the keys that identify equal contents, the holders of each block, and
// the free blocks that still hold a known prefix.
//
// Rules of vLLM's automatic prefix caching (its documentation, "Automatic Prefix Caching"): a full
// block has a key; a freed block keeps its content until it is taken again; blocks are taken in the
// order in which they were freed, a sequence's last block being freed first.
//
// Every call takes constant time for each block, on average. Memory: some 70 bytes a block.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/serving/step.hpp"

namespace bubblesim::serving {

/// An index of a block.
using BlockIndex = std::uint32_t;
/// Identifies the content of a full block and of all blocks before it. Never 0.
using BlockKey = std::uint64_t;

class BlockPool {
 public:
  explicit BlockPool(std::uint32_t blocks);

  [[nodiscard]] std::uint32_t size() const { return ring_; }
  /// Blocks that no sequence holds.
  [[nodiscard]] std::uint32_t free() const { return free_; }
  [[nodiscard]] std::uint32_t used() const { return size() - free_; }

  /// Takes the block that was freed longest ago and forgets its content. Precondition: one is free.
  [[nodiscard]] BlockIndex take();
  /// The block with this content, held or free.
  [[nodiscard]] std::optional<BlockIndex> find(BlockKey key) const;
  [[nodiscard]] bool is_free(BlockIndex block) const { return blocks_[block].holders == 0; }
  /// Adds a holder of the block.
  void share(BlockIndex block);
  /// Records that the block is full and has this content; if another block has it already, this one
  /// stays unknown.
  void remember(BlockIndex block, BlockKey key);
  /// Removes one holder of each, the last block first.
  void release(const std::vector<BlockIndex>& blocks);

 private:
  struct Block {
    BlockKey key = 0;
    std::uint32_t holders = 0;
    BlockIndex previous = 0;  ///< in the list of free blocks
    BlockIndex next = 0;
  };

  void append_free(BlockIndex block);
  void unlink(BlockIndex block);

  std::vector<Block> blocks_;
  BlockIndex ring_;  ///< the entry after the blocks, between the newest and the oldest free one
  std::uint32_t free_ = 0;
  std::unordered_map<BlockKey, BlockIndex> known_;
};

/// The key of the request's `block`-th block of `block_size` tokens. The key of a shared block
/// (SharedPrefix) depends only on its tokens; that of another block also on `life`, which is unique
/// to the request. Keys are hashes of 64 bits: two blocks collide with a chance of about 2^-64.
[[nodiscard]] BlockKey block_key(const Request& request, std::uint64_t life, std::uint32_t block,
                                 std::uint32_t block_size);

/// A number in [0, 1) that depends on only these three.
[[nodiscard]] double uniform_of(std::uint64_t seed, std::uint64_t request, std::uint64_t place);

}  // namespace bubblesim::serving
