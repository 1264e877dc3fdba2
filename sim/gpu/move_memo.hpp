// Remembers where blocks were placed or removed, by the SMs' contents before. The same few kernels
// meet in the same places once an iteration.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/gpu/hash_index.hpp"
#include "sim/gpu/sm_load.hpp"

namespace bubblesim::gpu {

using HeldId = StrongId<Held>;
using FootprintId = StrongId<Footprint>;

/// Everything that decides on which SMs blocks of one kernel are placed or removed.
struct Move {
  enum class Kind : std::uint32_t {
    kCome,      ///< place as many as fit, at most `most`
    kLeave,     ///< remove `most` of the placed ones
    kLeaveAll,
    kAdd,       ///< add all placed blocks to other held resources
  };
  Kind kind;
  HeldId held;
  FootprintId placed;
  HeldId passed_over;  ///< held resources that do not block it
  SmLoad block;        ///< one block, which takes one slot
  SmRange sms;         ///< SMs on which blocks may be
  std::uint32_t blocks_per_sm = 0;
  std::uint64_t most = 0;
};

/// The state afterwards.
struct Moved {
  std::uint64_t blocks = 0;  ///< blocks placed
  HeldId held;
  FootprintId placed;
};

class MoveMemo {
 public:
  /// One GPU of a data-parallel job under MPS meets 1,600 moves (configs/runs/dp-4xa100.json).
  static constexpr std::size_t kMost = 2048;

  explicit MoveMemo(std::size_t most) : most_(most) {}

  /// nullptr: the move is not remembered.
  [[nodiscard]] const Moved* find(const Move& move) const {
    const Words words = words_of(move);
    const std::uint32_t at = index_.find(hash_of(words), [&](std::uint32_t position) {
      return equal(entries_[position].move, words);
    });
    return at == HashIndex::kNowhere ? nullptr : &entries_[at].moved;
  }
  /// Precondition: the move is not remembered yet, and not full().
  const Moved& put(const Move& move, const Moved& moved) {
    const Words words = words_of(move);
    index_.add(hash_of(words), static_cast<std::uint32_t>(entries_.size()));
    return entries_.emplace_back(Entry{words, moved}).moved;
  }
  [[nodiscard]] bool full() const { return entries_.size() >= most_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  void clear() {
    entries_.clear();
    index_.clear();
  }

 private:
  using Words = std::array<std::uint64_t, 6>;

  /// Sized as a cache line.
  struct alignas(64) Entry {
    Words move;
    Moved moved;
  };

  [[nodiscard]] static std::uint64_t word_of(std::uint32_t a, std::uint32_t b) {
    return a | std::uint64_t{b} << 32U;
  }
  // No word combines two neighbouring members that were just set: one load of both would wait for
  // both stores, which costs more than all of the rest.
  [[nodiscard]] static Words words_of(const Move& move) {
    return {word_of(move.held.value, move.blocks_per_sm),
            word_of(move.placed.value, move.block.shared_memory),
            word_of(move.passed_over.value, static_cast<std::uint32_t>(move.kind)),
            word_of(move.block.warps, move.block.registers),
            word_of(move.sms.begin, move.sms.end),
            move.most};
  }
  [[nodiscard]] static bool equal(const Words& a, const Words& b) {
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
    return difference == 0;
  }
  // A sum, since a processor can compute its products in parallel.
  [[nodiscard]] static std::uint64_t hash_of(const Words& words) {
    std::uint64_t hash = 0;
    std::uint64_t factor = 0x9e3779b97f4a7c15;
    for (const std::uint64_t word : words) {
      hash += word * factor;
      factor *= 0xd1342543de82ef95;
    }
    return hash;
  }

  std::size_t most_;
  std::vector<Entry> entries_;
  HashIndex index_;
};

}  // namespace bubblesim::gpu
