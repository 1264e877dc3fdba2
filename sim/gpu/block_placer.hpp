// Decides to which SMs blocks of a kernel come, and which they leave.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/gpu/sm_load.hpp"
#include "sim/hardware/gpu_spec.hpp"

namespace bubblesim::gpu {

/// The next block of a kernel goes to the SM that has room for the most of its blocks, to the first
/// of several (Gilman and Walls: most room first). Blocks of a kernel are not told apart: one that
/// ends leaves the SM that has room for the fewest more, the last of several, so that blocks which
/// replace ended ones leave everything as it was. Nothing is rounded, so nothing drifts.
class BlockPlacer {
 public:
  explicit BlockPlacer(const hardware::GpuSpec& spec);

  struct Kernel {
    const SmLoad& block;
    std::uint32_t blocks_per_sm;
    const Footprint& placed;
    SmRange sms;              ///< that its blocks may come to
    const Held& passed_over;  ///< held resources that do not keep it waiting
  };

  /// A full wave of these needs fits if nothing is held.
  [[nodiscard]] bool has_room_for_all(const program::Residency& needs) const;
  /// Returns how many further blocks of the kernel fit beside what is held, at most `most`, and
  /// puts them into drawn().
  std::uint64_t find_room(const Held& held, const Kernel& kernel, std::uint64_t most);
  /// Chooses which `blocks` of the kernel leave, and puts them into drawn(). Precondition: so many
  /// are placed.
  void choose_leavers(const Held& held, const Kernel& kernel, std::uint64_t blocks);
  /// The blocks that the last call chose to come or leave.
  [[nodiscard]] const Footprint& drawn() const { return drawn_; }

 private:
  /// SMs that offer a block each at every level of [low, high).
  struct Offer {
    SmRange sms;
    std::uint32_t low;
    std::uint32_t high;
    [[nodiscard]] std::uint32_t count() const { return sms.end - sms.begin; }
  };

  /// The level of the last blocks to be placed: `blocks` of the `sms` SMs that offer one there.
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
  std::vector<Offer> offers_;  ///< kept for its memory
  Footprint drawn_;
};

}  // namespace bubblesim::gpu
