// The resources that resident blocks hold on each SM; places and removes blocks.
//
// Each move of blocks is computed once (BlockPlacer) and remembered by the previous state, since
// the same kernels of a training job meet in every iteration.
//
// Units: SMs, warps, registers, bytes, block slots.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/gpu/block_placer.hpp"
#include "sim/gpu/move_memo.hpp"
#include "sim/gpu/sm_load.hpp"
#include "sim/gpu/value_table.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kernel_profile.hpp"

namespace bubblesim::gpu {

/// The SMs of a GPU, and the resources held on each. Memory is bounded: when a fixed number of
/// moves is reached, all are forgotten, and with them values that no SM has any more.
class SmBlocks {
 public:
  explicit SmBlocks(const hardware::GpuSpec& spec, std::size_t most_moves = MoveMemo::kMost);

  /// A kernel that needs room. FootprintId{}: it has no blocks.
  struct Kernel {
    const program::Residency& needs;
    FootprintId placed;
    SmRange sms;              ///< on which its blocks may be
    HeldId passed_over = {};  ///< held resources that do not block it; HeldId{}: none
  };

  /// Whether the SMs are empty and a full wave of blocks with these needs fits.
  [[nodiscard]] bool has_room_for_all(const program::Residency& needs) const {
    return held_ == HeldId{} && placer_.has_room_for_all(needs);
  }

  /// How many further blocks of the kernel fit, at most `most`.
  std::uint64_t find_room(const Kernel& kernel, std::uint64_t most);
  /// Places the blocks that find_room() has just found room for.
  void take(FootprintId& placed) { become(found_, placed); }
  /// Removes blocks. Precondition: at least as many are placed.
  void give(const Kernel& kernel, FootprintId& placed, std::uint64_t blocks);
  void give_all(const program::Residency& needs, FootprintId& placed);
  /// The sum of these blocks and `held`, which is HeldId{} or the last call's result. The result is
  /// valid until the next call.
  [[nodiscard]] HeldId add(HeldId held, const program::Residency& needs, FootprintId placed);

  [[nodiscard]] const Held& held() const { return helds_[held_]; }
  [[nodiscard]] const Footprint& footprint(FootprintId id) const { return footprints_[id]; }
  /// Numbers of remembered moves and values.
  [[nodiscard]] std::size_t moves() const { return memo_.size(); }
  [[nodiscard]] std::size_t values() const { return helds_.size() + footprints_.size(); }

 private:
  [[nodiscard]] const Moved& ask(const Move& move) {
    const Moved* known = memo_.find(move);
    return known != nullptr ? *known : work_out(move);
  }
  [[nodiscard, gnu::noinline]] const Moved& work_out(const Move& move);
  [[nodiscard]] Moved calculate(const Move& move);
  void become(const Moved& moved, FootprintId& placed) {
    helds_.replace(held_, moved.held);
    footprints_.replace(placed, moved.placed);
  }

  BlockPlacer placer_;
  ValueTable<SmLoad> helds_;
  ValueTable<std::uint32_t> footprints_;
  MoveMemo memo_;
  HeldId held_;
  HeldId sum_;             ///< result of add()
  Moved found_;            ///< result of find_room()
  Held held_then_;         ///< a member to reuse its memory
  Footprint placed_then_;  ///< a member to reuse its memory
};

}  // namespace bubblesim::gpu
