// The resources that blocks hold on SMs, and the SMs of one kernel's blocks.
//
// Units: warps, registers, bytes, block slots.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/gpu/by_sm.hpp"
#include "sim/program/kernel_profile.hpp"

namespace bubblesim::gpu {

/// Resources that blocks hold on one SM.
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

/// The resources of one block on an SM.
[[nodiscard]] inline SmLoad load_of(const program::Residency& needs) {
  // A block that asks for more than an SM has takes the whole SM, whatever the excess.
  constexpr std::uint64_t kBeyondAnySm = std::uint64_t{1} << 26;
  const auto shared = static_cast<std::uint32_t>(std::min(needs.shared_memory_bytes, kBeyondAnySm));
  return {needs.warps, needs.registers, shared, 1};
}

/// The resources of `blocks` such blocks.
[[nodiscard]] inline SmLoad operator*(const SmLoad& load, std::uint32_t blocks) {
  return {load.warps * blocks, load.registers * blocks, load.shared_memory * blocks,
          load.slots * blocks};
}

/// SMs [begin, end).
struct SmRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// The load of each SM.
using Held = BySm<SmLoad>;
/// Blocks of one kernel that each SM holds.
using Footprint = BySm<std::uint32_t>;

}  // namespace bubblesim::gpu
