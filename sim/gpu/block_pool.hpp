// The resources of a GPU that resident blocks hold, summed over its SMs.
//
// Units: warps, registers, bytes, block slots. The sum over SMs is a simplification: resources
// left over on different SMs count as if they lay on one (sim/gpu/README.md, "Simplifications").
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/gpu/kernel_profile.hpp"
#include "sim/hardware/gpu_spec.hpp"

namespace bubblesim::gpu {

/// What is free. Taking and giving back never round, so nothing drifts.
class BlockPool {
 public:
  explicit BlockPool(const hardware::GpuSpec& spec);

  /// How many more blocks of these needs fit now.
  [[nodiscard]] std::uint64_t fits(const Residency& needs) const {
    const std::uint64_t alone = needs.blocks_per_sm * sm_count_;
    return resident_ == 0 ? alone : std::min(alone, left_for(needs));
  }
  /// Precondition: blocks <= fits(needs).
  void take(const Residency& needs, std::uint64_t blocks) {
    warps_ -= needs.warps * blocks;
    registers_ -= needs.registers * blocks;
    shared_memory_ -= needs.shared_memory_bytes * blocks;
    slots_ -= blocks;
    resident_ += blocks;
  }
  /// Precondition: taken before.
  void give(const Residency& needs, std::uint64_t blocks) {
    warps_ += needs.warps * blocks;
    registers_ += needs.registers * blocks;
    shared_memory_ += needs.shared_memory_bytes * blocks;
    slots_ += blocks;
    resident_ -= blocks;
  }

 private:
  [[nodiscard]] std::uint64_t left_for(const Residency& needs) const;

  std::uint64_t warps_;
  std::uint64_t registers_;
  std::uint64_t shared_memory_;
  std::uint64_t slots_;
  std::uint64_t resident_ = 0;
  std::uint64_t sm_count_;
};

}  // namespace bubblesim::gpu
