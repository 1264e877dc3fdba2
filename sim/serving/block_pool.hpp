// The paged KV cache: blocks, the keys by which equal contents are known, who holds them, and
// which of the free ones still hold a known prefix.
//
// Rules of vLLM's automatic prefix caching (its documentation, "Automatic Prefix Caching"): a full
// block is known by a key; a freed block keeps its content until it is taken again; blocks are
// taken in the order in which they were freed, a sequence's last block being freed first.
//
// Every call takes constant time a block, on average. Memory: some 70 bytes a block.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/serving/step.hpp"

namespace bubblesim::serving {

/// An index of a block.
using BlockIndex = std::uint32_t;
/// Tells the content of a full block, and of all before it. Never 0.
using BlockKey = std::uint64_t;

class BlockPool {
 public:
  explicit BlockPool(std::uint32_t blocks);

  [[nodiscard]] std::uint32_t size() const { return ring_; }
  /// Blocks that no sequence holds.
  [[nodiscard]] std::uint32_t free() const { return free_; }
  [[nodiscard]] std::uint32_t used() const { return size() - free_; }

  /// Takes the free block that was freed longest ago; its content is forgotten.
  /// Precondition: one is free.
  [[nodiscard]] BlockIndex take();
  /// The block of that content, held or free.
  [[nodiscard]] std::optional<BlockIndex> find(BlockKey key) const;
  [[nodiscard]] bool is_free(BlockIndex block) const { return blocks_[block].holders == 0; }
  /// Adds a holder of the block.
  void share(BlockIndex block);
  /// The block is full and has that content; if another block has it already, this one stays
  /// unknown.
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

/// The key of the request's `block`-th block of `block_size` tokens. Blocks that the request shares
/// (SharedPrefix) have keys that depend on their tokens alone; keys of its other blocks depend on
/// `life`, which no other request has. Keys are hashes of 64 bits: two blocks collide with a chance
/// of about 2^-64.
[[nodiscard]] BlockKey block_key(const Request& request, std::uint64_t life, std::uint32_t block,
                                 std::uint32_t block_size);

/// A number in [0, 1) that depends on these three alone.
[[nodiscard]] double uniform_of(std::uint64_t seed, std::uint64_t request, std::uint64_t place);

}  // namespace bubblesim::serving
