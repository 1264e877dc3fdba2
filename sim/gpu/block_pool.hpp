// What resident blocks hold of each SM, and which SMs the next ones go to.
//
// Units: SMs, warps, registers, bytes, block slots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/gpu/by_sm.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kernel_profile.hpp"

namespace bubblesim::gpu {

/// What blocks hold of one SM.
struct SmLoad {
  std::uint32_t warps = 0;
  std::uint32_t registers = 0;
  std::uint32_t shared_memory = 0;  ///< bytes
  std::uint32_t slots = 0;

  friend bool operator==(const SmLoad&, const SmLoad&) = default;
  SmLoad& operator+=(const SmLoad& other) {
    warps += other.warps;
    registers += other.registers;
    shared_memory += other.shared_memory;
    slots += other.slots;
    return *this;
  }
  SmLoad& operator-=(const SmLoad& other) {
    warps -= other.warps;
    registers -= other.registers;
    shared_memory -= other.shared_memory;
    slots -= other.slots;
    return *this;
  }
};

/// Of one block.
[[nodiscard]] inline SmLoad load_of(const program::Residency& needs) {
  // A block that asks for more than any SM has is alone on its SM: how much more says nothing.
  constexpr std::uint64_t kBeyondAnySm = std::uint64_t{1} << 26;
  const auto shared = static_cast<std::uint32_t>(std::min(needs.shared_memory_bytes, kBeyondAnySm));
  return {needs.warps, needs.registers, shared, 1};
}
/// Of so many.
[[nodiscard]] inline SmLoad operator*(const SmLoad& one, std::uint32_t blocks) {
  return {one.warps * blocks, one.registers * blocks, one.shared_memory * blocks,
          one.slots * blocks};
}

/// SMs [begin, end).
struct SmRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// Blocks of one kernel that each SM holds.
using Footprint = BySm<std::uint32_t>;

/// Adds what blocks of a kernel hold to what is held.
inline void hold(BySm<SmLoad>& held, const program::Residency& needs, const Footprint& blocks) {
  held.change_each(blocks, [one = load_of(needs)](SmLoad& here, std::uint32_t each) {
    here += one * each;
  });
}

/// The SMs of a GPU, and what is held of each. The next block of a kernel goes to the SM that has
/// room for the most of its blocks, to the first of several (Gilman and Walls: most room first).
/// Blocks of a kernel are not told apart: one that ends leaves the SM that has room for the fewest
/// more, the last of several, so that blocks which replace ended ones leave everything as it was.
/// Nothing is rounded, so nothing drifts.
class BlockPool {
 public:
  explicit BlockPool(const hardware::GpuSpec& spec);

  /// A kernel that looks for room.
  struct Kernel {
    const program::Residency& needs;
    const Footprint& placed;
    SmRange sms;                      ///< that its blocks may go to
    const BySm<SmLoad>* passed_over;  ///< what is held and not in its way; nullptr: nothing
  };

  /// What nothing holds.
  [[nodiscard]] BySm<SmLoad> nothing() const { return BySm<SmLoad>(sm_count_); }
  /// Nothing is held, and a full wave of these needs fits.
  [[nodiscard]] bool has_room_for_all(const program::Residency& needs) const;

  /// How many further blocks of the kernel fit.
  [[nodiscard]] std::uint64_t find_room(const Kernel& kernel);
  /// Places blocks where find_room() has just found room for at least so many.
  void take(const program::Residency& needs, Footprint& placed, std::uint64_t blocks);
  /// Precondition: so many are placed, and more.
  void give(const Kernel& kernel, Footprint& placed, std::uint64_t blocks);
  void give_all(const program::Residency& needs, Footprint& placed);

 private:
  /// SMs that offer a block each at every level of [low, high).
  struct Offer {
    SmRange sms;
    std::uint32_t low;
    std::uint32_t high;
    [[nodiscard]] std::uint32_t count() const { return sms.end - sms.begin; }
  };

  /// Where the last of some blocks go: `blocks` of the `sms` SMs that offer one at this level.
  struct LastLevel {
    std::uint32_t level = 0;
    std::uint32_t sms = 0;
    std::uint32_t blocks = 0;
  };
  enum class Side : std::uint8_t { kFirstSms, kLastSms };

  template <class Visit>
  void each_room(const Kernel& kernel, SmRange sms, Visit visit) const;
  [[nodiscard]] std::uint32_t most_beside(const SmLoad& others, const SmLoad& one,
                                          std::uint32_t most) const;
  [[nodiscard]] LastLevel last_level(std::uint64_t blocks) const;
  void draw(std::uint64_t blocks, Side side);
  void draw_evenly(std::uint64_t blocks);
  void offer_room();
  void release(const program::Residency& needs, const Footprint& blocks);

  SmLoad total_;  ///< of one SM
  std::uint32_t sm_count_;
  BySm<SmLoad> held_;
  std::vector<Offer> offers_;
  Footprint drawn_;  ///< blocks that come or go, or could come
  std::uint64_t room_ = 0;  ///< blocks that find_room() found room for
};

}  // namespace bubblesim::gpu
