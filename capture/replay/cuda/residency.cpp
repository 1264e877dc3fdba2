#include "capture/replay/cuda/residency.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::capture::cuda {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kRegisterUnit = 256;
constexpr std::uint32_t kWarpUnit = 4;
constexpr std::uint64_t kSharedUnit = 128;

template <class Number>
Number round_up(Number value, Number unit) {
  return (value + unit - 1) / unit * unit;
}

std::uint32_t difference(std::uint32_t a, std::uint32_t b) { return a > b ? a - b : b - a; }

/// Changes a shape to fit the GPU's limits: too many threads are reduced in z, then y, then x.
void clamp(const DeviceFacts& facts, StandInShape& shape) {
  const StandInShape asked = shape;
  for (std::size_t i = 0; i < 3; ++i) {
    shape.grid[i] = std::clamp(shape.grid[i], 1U, std::max(facts.most_blocks[i], 1U));
    shape.block[i] = std::clamp(shape.block[i], 1U, std::max(facts.most_threads[i], 1U));
  }
  for (std::size_t i = 3; i-- > 0 && shape.threads() > facts.threads_per_block;) {
    const auto others = static_cast<std::uint32_t>(shape.threads() / shape.block[i]);
    shape.block[i] = std::max(1U, facts.threads_per_block / others);
  }
  // The kernels number blocks in 32 bits.
  while (shape.grid_blocks() > 0xFFFFFFFFU)
    *std::max_element(shape.grid.begin(), shape.grid.end()) /= 2;
  shape.shared_bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(shape.shared_bytes, facts.shared_bytes_per_block));
  shape.clamped = shape.grid != asked.grid || shape.block != asked.block ||
                  shape.shared_bytes != asked.shared_bytes;
}

}  // namespace

std::uint32_t blocks_per_sm(const DeviceFacts& facts, std::uint32_t threads,
                            std::uint32_t registers, std::uint64_t shared_bytes) {
  const std::uint32_t warps = std::max(1U, round_up(threads, kWarp) / kWarp);
  std::uint64_t blocks = std::min(facts.blocks_per_sm, facts.threads_per_sm / kWarp / warps);
  if (registers > 0) {
    const std::uint32_t of_warp = round_up(registers * kWarp, kRegisterUnit);
    const std::uint32_t fit = facts.registers_per_sm / of_warp / kWarpUnit * kWarpUnit;
    blocks = std::min<std::uint64_t>(blocks, fit / warps);
  }
  const std::uint64_t shared = round_up(shared_bytes + facts.reserved_shared_bytes, kSharedUnit);
  if (shared > 0) blocks = std::min(blocks, facts.shared_bytes_per_sm / shared);
  return static_cast<std::uint32_t>(blocks);
}

StandInShape shape_stand_in(const DeviceFacts& facts, const traces::LaunchShape& traced) {
  StandInShape shape;
  shape.grid = traced.grid;
  shape.block = traced.block;
  shape.shared_bytes = traced.shared_memory_bytes;
  clamp(facts, shape);
  const auto threads = static_cast<std::uint32_t>(shape.threads());
  shape.traced_blocks =
      std::max(1U, blocks_per_sm(facts, threads, traced.registers_per_thread, shape.shared_bytes));
  std::pair nearest{0xFFFFFFFFU, 0U};  // blocks an SM, registers
  for (const Variant& variant : kVariants) {
    if (threads > variant.threads) continue;
    const std::uint32_t blocks =
        blocks_per_sm(facts, threads, variant.registers, shape.shared_bytes);
    const std::pair distance{difference(blocks, shape.traced_blocks),
                             difference(variant.registers, traced.registers_per_thread)};
    if (blocks == 0 || distance >= nearest) continue;
    nearest = distance;
    shape.registers = variant.registers;
    shape.blocks = blocks;
  }
  return shape;
}

}  // namespace bubblesim::capture::cuda
