// The resources of a GPU that resident blocks hold, summed over its SMs.
//
// Units: warps, registers, bytes, block slots. The sum over SMs is a simplification: resources
// left over on different SMs count as if they lay on one (sim/gpu/README.md, "Simplifications").
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kernel_profile.hpp"

namespace bubblesim::gpu {

/// Amounts of each resource.
struct BlockResources {
  std::uint64_t warps = 0;
  std::uint64_t registers = 0;
  std::uint64_t shared_memory_bytes = 0;
  std::uint64_t slots = 0;

  friend BlockResources operator-(BlockResources a, const BlockResources& b) {
    a.warps -= b.warps;
    a.registers -= b.registers;
    a.shared_memory_bytes -= b.shared_memory_bytes;
    a.slots -= b.slots;
    return a;
  }
  void add(const program::Residency& needs, std::uint64_t blocks) {
    warps += needs.warps * blocks;
    registers += needs.registers * blocks;
    shared_memory_bytes += needs.shared_memory_bytes * blocks;
    slots += blocks;
  }
  void remove(const program::Residency& needs, std::uint64_t blocks) {
    warps -= needs.warps * blocks;
    registers -= needs.registers * blocks;
    shared_memory_bytes -= needs.shared_memory_bytes * blocks;
    slots -= blocks;
  }
};

/// What clients hold, and what that leaves. Taking and giving back never round, so nothing
/// drifts. A client whose kernels share space as recorded may hold more than there is: to others
/// it then holds everything.
class BlockPool {
 public:
  explicit BlockPool(const hardware::GpuSpec& spec);

  void set_clients(std::size_t count) { held_.resize(count); }

  /// How many of `most` blocks of these needs fit beside everything resident.
  [[nodiscard]] std::uint64_t fits(const program::Residency& needs, std::uint64_t most) const {
    if (all_held_.slots == 0) return std::min(most, needs.blocks_per_sm * sm_count_);
    return fits_in(left_by(all_held_), needs, most);
  }
  /// How many of `most` fit for a kernel of `client` that has `own` blocks resident, if its other
  /// kernels are not in its way.
  [[nodiscard]] std::uint64_t fits_beside_others(ClientId client, const program::Residency& needs,
                                                 std::uint64_t own, std::uint64_t most) const;
  /// Nobody holds anything, and a full wave of these needs fits.
  [[nodiscard]] bool has_room_for_all(const program::Residency& needs) const {
    const std::uint64_t blocks = needs.blocks_per_sm * sm_count_;
    return all_held_.slots == 0 && needs.warps * blocks <= total_.warps && blocks <= total_.slots &&
           needs.registers * blocks <= total_.registers &&
           needs.shared_memory_bytes * blocks <= total_.shared_memory_bytes;
  }
  void take(ClientId client, const program::Residency& needs, std::uint64_t blocks) {
    held_[client.index()].add(needs, blocks);
    all_held_.add(needs, blocks);
  }
  /// Precondition: taken before.
  void give(ClientId client, const program::Residency& needs, std::uint64_t blocks) {
    held_[client.index()].remove(needs, blocks);
    all_held_.remove(needs, blocks);
  }

 private:
  [[nodiscard]] BlockResources left_by(const BlockResources& held) const;
  [[nodiscard]] std::uint64_t fits_in(const BlockResources& left, const program::Residency& needs,
                                      std::uint64_t most) const;

  BlockResources total_;
  std::vector<BlockResources> held_;  ///< by client
  BlockResources all_held_;           ///< their sum
  std::uint64_t sm_count_;
};

}  // namespace bubblesim::gpu
