// How many blocks of a kernel an SM holds, and which stand-in's registers give the same number.
#pragma once

#include <array>
#include <cstdint>

#include "capture/replay/cuda/device_context.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture::cuda {

/// Registers a thread of the stand-ins (stand_in_kernels.cu), ascending, and the largest block that
/// each is compiled for.
struct Variant {
  std::uint32_t registers;
  std::uint32_t threads;
};
inline constexpr std::array<Variant, 8> kVariants{{{32, 1024}, {40, 768}, {48, 640}, {64, 1024},
                                                   {96, 640}, {128, 512}, {168, 384}, {255, 256}}};

/// Blocks that an SM holds at once, by CUDA's occupancy rules (CUDA C++ programming guide, compute
/// capabilities: a warp's registers in units of 256, warps in fours, shared memory in 128 bytes).
/// `registers` 0: they do not limit.
[[nodiscard]] std::uint32_t blocks_per_sm(const DeviceFacts& facts, std::uint32_t threads,
                                          std::uint32_t registers, std::uint64_t shared_bytes);

/// The shape of a stand-in for a kernel.
struct StandInShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t shared_bytes = 0;  ///< dynamic
  std::uint32_t registers = 32;    ///< of the variant
  std::uint32_t traced_blocks = 0;   ///< resident blocks of the traced kernel on an SM
  std::uint32_t blocks = 0;          ///< of the stand-in, by blocks_per_sm()
  bool clamped = false;              ///< the traced shape is beyond this GPU's limits

  [[nodiscard]] std::uint64_t grid_blocks() const {
    return std::uint64_t{grid[0]} * grid[1] * grid[2];
  }
  /// Threads of a block.
  [[nodiscard]] std::uint64_t threads() const {
    return std::uint64_t{block[0]} * block[1] * block[2];
  }
};

/// The variant nearest to the traced kernel's residency; of several the nearest in registers, since
/// the registers left on an SM decide which blocks fit beside it; of two, the one with fewer.
[[nodiscard]] StandInShape shape_stand_in(const DeviceFacts& facts,
                                          const traces::LaunchShape& traced);

}  // namespace bubblesim::capture::cuda
