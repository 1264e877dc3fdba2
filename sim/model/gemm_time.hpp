// Inside of kernel_time: the time of a matrix product, by the mechanism of the libraries.
//
// The library cuts the m x n output into tiles, one a block, and k into `split` parts. It takes the
// fastest one of all its tiles and splits:
//
//   blocks  = ceil(m/tm) * ceil(n/tn) * batch * split
//   waves   = blocks / SMs, the last one counted whole but for `idle_speedup` of its idle part
//   math    = 2 tm tn ceil(k/split) / (peak/SMs * math_share * S/(S + tile_half_size)),
//             S = tm tn/(tm + tn): a small tile loads more operands for each product
//   compute = c (1 + hot_slowdown c/(c + hot_after)), c = waves (math + wave_overhead)
//   memory  = bytes / (DRAM bandwidth * dram_share * min(1, busy SMs/(SMs * sm_reach)))
//   time    = fixed + (compute^p + memory^p)^(1/p) + partial sums of a split
//
// Sources of the mechanism: wave quantisation and tile sizes, NVIDIA "Matrix Multiplication
// Background User's Guide"; split-k, CUTLASS "Efficient GEMM". The constants are fitted.
#pragma once

#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/kernel_work.hpp"

namespace bubblesim::model {

struct Tile {
  std::uint32_t m = 0;
  std::uint32_t n = 0;
};

struct GemmPlan {
  Tile tile;
  std::uint32_t split = 1;
  double blocks = 0;
  double compute_s = 0;
  double memory_s = 0;
  double seconds = 0;  ///< all of it
};

/// The fastest plan on all SMs but `carveout`; of equal ones the one with the larger tile and the
/// smaller split.
[[nodiscard]] GemmPlan plan_gemm(const KernelWork& work, const hardware::GpuSpec& gpu,
                                 const Efficiency& efficiency, std::uint32_t carveout = 0);

/// The time of one given plan.
[[nodiscard]] GemmPlan time_plan(const KernelWork& work, Tile tile, std::uint32_t split,
                                 const hardware::GpuSpec& gpu, const Efficiency& efficiency,
                                 std::uint32_t carveout = 0);

}  // namespace bubblesim::model
