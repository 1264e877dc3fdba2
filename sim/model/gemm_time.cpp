#include "sim/model/gemm_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bubblesim::model {
namespace {

// The tiles that cuBLAS and CUTLASS ship for tensor cores since Volta.
constexpr std::array kTiles = {Tile{256, 128}, Tile{128, 256}, Tile{128, 128},
                               Tile{128, 64},  Tile{64, 128},  Tile{64, 64}};
constexpr std::uint32_t kMaxSplit = 6;
constexpr double kLoopStep = 32;     // elements of k that a block takes at a time
constexpr double kSumBytes = 8;      // a partial sum is written and read, 4 bytes each
constexpr double kSplitLaunch_s = 1e-6;  // the kernel that adds partial sums

double up(double value, double unit) { return std::ceil(value / unit); }

// Compute time of all blocks on one SM each.
double compute_seconds(double blocks, double block_flops, double sms, double flops_of_sm,
                       const GemmEfficiency& e) {
  const double full = std::floor(blocks / sms);
  const double rest = blocks / sms - full;
  const double waves = full + (rest > 0 ? 1.0 - e.idle_speedup * (1.0 - rest) : 0.0);
  const double cold = waves * (block_flops / flops_of_sm + e.wave_overhead_s);
  return cold * (1.0 + e.hot_slowdown * cold / (cold + e.hot_after_s));
}

}  // namespace

GemmPlan time_plan(const KernelWork& work, Tile tile, std::uint32_t split,
                   const hardware::GpuSpec& gpu, const Efficiency& efficiency,
                   std::uint32_t carveout) {
  const GemmEfficiency& e =
      work.kind == KernelKind::kConvolution ? efficiency.convolution : efficiency.gemm;
  const GemmShape& shape = work.gemm;
  const auto m = static_cast<double>(shape.m);
  const auto n = static_cast<double>(shape.n);
  const auto batch = static_cast<double>(shape.batch);
  const double all_sms = gpu.sm_count;
  const double sms = all_sms - carveout;
  const double bandwidth = gpu.dram_bandwidth.value;
  const double size = static_cast<double>(tile.m) * tile.n / (tile.m + tile.n);
  const Precision unit = computed_in(efficiency, work.precision);
  const double share = unit == Precision::kFp32 ? e.fp32_math_share : e.math_share;
  const double flops_of_sm =
      efficiency.peak_flops[index_of(unit)] / all_sms * share * size / (size + e.tile_half_size);
  const double depth = up(static_cast<double>(shape.k) / split, kLoopStep) * kLoopStep;

  GemmPlan plan{tile, split, up(m, tile.m) * up(n, tile.n) * batch * split, 0, 0, 0};
  plan.compute_s =
      compute_seconds(plan.blocks, 2.0 * tile.m * tile.n * depth, sms, flops_of_sm, e);
  const double reach = std::min(1.0, plan.blocks / (all_sms * e.sm_reach));
  plan.memory_s = work.bytes / (bandwidth * e.dram_share * reach);
  const double p = e.roof_exponent;
  const double longer = std::max(plan.compute_s, plan.memory_s);
  const double ratio = std::min(plan.compute_s, plan.memory_s) / longer;
  plan.seconds = e.fixed_s + longer * std::pow(1.0 + std::pow(ratio, p), 1.0 / p);
  if (split > 1) {
    plan.seconds +=
        kSplitLaunch_s + m * n * batch * kSumBytes * split / (bandwidth * e.split_dram_share);
  }
  return plan;
}

GemmPlan plan_gemm(const KernelWork& work, const hardware::GpuSpec& gpu,
                   const Efficiency& efficiency, std::uint32_t carveout) {
  GemmPlan best = time_plan(work, kTiles.front(), 1, gpu, efficiency, carveout);
  for (const Tile tile : kTiles) {
    for (std::uint32_t split = 1; split <= kMaxSplit; ++split) {
      const GemmPlan plan = time_plan(work, tile, split, gpu, efficiency, carveout);
      if (plan.seconds < best.seconds) best = plan;
    }
  }
  return best;
}

}  // namespace bubblesim::model
