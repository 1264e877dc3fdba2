// Chooses the SMs on which blocks of a kernel are placed, and from which they leave.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/gpu/sm_load.hpp"
#include "sim/hardware/gpu_spec.hpp"

namespace bubblesim::gpu {

/// The next block of a kernel goes to the SM with room for the most of its blocks, the first such
/// SM (Gilman and Walls: most room first). Blocks of a kernel are interchangeable: an ending block
/// leaves the SM with room for the fewest more, the last such SM, so that replacing ended blocks
/// restores the same placement. Nothing is rounded, so nothing drifts.
class BlockPlacer {
 public:
  explicit BlockPlacer(const hardware::GpuSpec& spec);

  struct Kernel {
    const SmLoad& block;
    std::uint32_t blocks_per_sm;
    const Footprint& placed;
    SmRange sms;              ///< on which its blocks may be
    const Held& passed_over;  ///< held resources that do not block it
  };

  /// Whether a full wave with these needs fits on empty SMs.
  [[nodiscard]] bool has_room_for_all(const program::Residency& needs) const;
  /// Returns how many further blocks of the kernel fit beside `held`, at most `most`, and puts them
  /// into drawn().
  std::uint64_t find_room(const Held& held, const Kernel& kernel, std::uint64_t most);
  /// Chooses which `blocks` of the kernel leave, and puts them into drawn(). Precondition: at least
  /// as many are placed.
  void choose_leavers(const Held& held, const Kernel& kernel, std::uint64_t blocks);
  /// The blocks that the last call placed or removed.
  [[nodiscard]] const Footprint& drawn() const { return drawn_; }

 private:
  /// SMs that have room for a block each at every level of [low, high).
  struct Offer {
    SmRange sms;
    std::uint32_t low;
    std::uint32_t high;
    [[nodiscard]] std::uint32_t count() const { return sms.end - sms.begin; }
  };

  /// The level at which the last blocks are placed: `blocks` of the `sms` SMs with room there.
  struct LastLevel {
    std::uint32_t level = 0;
    std::uint32_t sms = 0;
    std::uint32_t blocks = 0;
  };
  enum class Side : std::uint8_t { kFirstSms, kLastSms };

  template <class Visit>
  void each_part(const Held& all, const Kernel& kernel, SmRange sms, Visit visit) const;
  [[nodiscard]] std::uint32_t room(const Kernel& kernel, std::uint32_t placed,
                                   const SmLoad& others) const;
  [[nodiscard]] std::uint32_t most_beside(const SmLoad& others, const SmLoad& block,
                                          std::uint32_t most) const;
  [[nodiscard]] LastLevel last_level(std::uint64_t blocks) const;
  void draw(std::uint64_t blocks, Side side);
  void draw_evenly(std::uint64_t blocks);
  void offer_room();

  SmLoad total_;  ///< of one SM
  std::uint32_t sm_count_;
  std::vector<Offer> offers_;  ///< a member to reuse its memory
  Footprint drawn_;
};

}  // namespace bubblesim::gpu
