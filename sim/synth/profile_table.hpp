// The kernel profiles of a program that is being written: equal ones are one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>

#include "sim/synth/timed_model.hpp"

namespace bubblesim::synth {

class ProfileTable {
 public:
  /// The index of the kernel's profile; `add(profile, launch)` appends one and returns its index.
  template <class Add>
  [[nodiscard]] std::uint32_t index_of(const TimedKernel& kernel, Add&& add) {
    const auto [place, fresh] = known_.try_emplace(key_of(kernel), 0);
    if (fresh) place->second = add(kernel.profile, kernel.launch);
    return place->second;
  }

 private:
  /// What makes two profiles one: blocks, warps, registers, shared memory, blocks an SM, class,
  /// shares, and the shape as launched.
  using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t,
                         program::KernelClass, double, double, std::array<std::uint32_t, 3>,
                         std::array<std::uint32_t, 3>>;

  static Key key_of(const TimedKernel& kernel) {
    const program::KernelProfile& profile = kernel.profile;
    return {profile.blocks,
            profile.residency.warps,
            profile.residency.registers,
            profile.residency.shared_memory_bytes,
            profile.residency.blocks_per_sm,
            profile.kernel_class,
            profile.dram_share,
            profile.issue_share,
            kernel.launch.grid,
            kernel.launch.block};
  }

  std::map<Key, std::uint32_t> known_;
};

}  // namespace bubblesim::synth
