#include "sim/model/kernel_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>


namespace bubblesim::model {
namespace {

constexpr double kQueries = 128;  // of a block of attention

std::uint32_t count(double value) {
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  if (!(value > 1.0)) return 1;
  return static_cast<std::uint32_t>(std::min(std::ceil(value), kMost));
}

Duration to_duration(double seconds) {
  constexpr double kMost = 1e17;  // ns; three years
  if (!(seconds > 0)) return Duration{1};  // an empty product: 0 / 0 above
  return Duration{static_cast<std::int64_t>(std::clamp(std::round(seconds * 1e9), 1.0, kMost))};
}

// Launches as profilers show them for cuBLAS kernels. From compute capability 9.0 on: 384
// threads (a loading and two multiplying warp groups), and blocks that stay and take tile after
// tile, so that the grid never exceeds the SMs. Products on CUDA cores (sgemm, and CUTLASS's SIMT
// kernels) take 8 elements of k a stage, in two stages, with half of an SM's registers a block.
Launch launch_of(const GemmPlan& plan, const KernelWork& work, const hardware::GpuSpec& gpu,
                 std::uint32_t carveout) {
  const GemmShape& shape = work.gemm;
  const bool cuda_cores = work.precision == Precision::kFp32;
  const std::uint32_t depth = cuda_cores ? 8 : 32;  // elements of k a stage
  const bool large = plan.tile.m * plan.tile.n >= 128 * 128;
  const bool hopper = blocks_stay(work, gpu);
  // Asynchronous copies: four stages, before: two.
  const bool staged = gpu.compute_major >= 8 && !cuda_cores;
  Launch out;
  const double tiles = std::ceil(static_cast<double>(shape.m) / plan.tile.m) *
                       std::ceil(static_cast<double>(shape.n) / plan.tile.n);
  out.grid = {count(tiles), 1, count(static_cast<double>(shape.batch) * plan.split)};
  if (hopper) out.grid = {count(std::min<double>(plan.blocks, gpu.sm_count - carveout)), 1, 1};
  out.block = {hopper ? 384U : large ? 256U : 128U, 1, 1};
  out.registers_per_thread = hopper ? 168 : large && !cuda_cores ? 234 : 122;
  const double stage = (plan.tile.m + plan.tile.n) * depth * bytes_of(work.precision);
  const double wanted = stage * (hopper ? 8 : staged ? 4 : 2);
  const double most = static_cast<double>(gpu.sm.shared_memory_bytes) -
                      static_cast<double>(gpu.sm.shared_memory_reserved_bytes);
  out.shared_memory_bytes = count(std::min(wanted, most));
  return out;
}

KernelTime time_gemm(const KernelWork& work, const hardware::GpuSpec& gpu,
                     const Efficiency& efficiency, std::uint32_t sm_carveout) {
  const std::uint32_t carveout = blocks_stay(work, gpu) ? sm_carveout : 0;
  const GemmPlan plan = plan_gemm(work, gpu, efficiency, carveout);
  return {to_duration(plan.seconds), launch_of(plan, work, gpu, carveout),
          plan.memory_s > plan.compute_s};
}

// Bytes of shared memory: queries and keys of a block.
std::uint32_t attention_tile(const KernelWork& work, const hardware::GpuSpec& gpu) {
  const double tile = 2.0 * kQueries * static_cast<double>(work.gemm.k) * bytes_of(work.precision);
  return count(std::min(tile, static_cast<double>(gpu.sm.shared_memory_bytes) / 2.0));
}

// FLOP/s of an SM at attention, at so many times the speed of prompts.
double attention_flops_of_sm(const KernelWork& work, const hardware::GpuSpec& gpu,
                             const Efficiency& efficiency, double to_prompts) {
  const AttentionEfficiency& e = efficiency.attention;
  const auto head = static_cast<double>(work.gemm.k);
  return to_prompts * peak_flops(efficiency, work.precision) / gpu.sm_count * e.math_share * head /
         (head + e.head_half_size);
}

double attention_memory_s(const KernelWork& work, const hardware::GpuSpec& gpu,
                          const Efficiency& efficiency) {
  const double share = efficiency.streams[index_of(KernelKind::kElementwise)].dram_share;
  return work.bytes / (gpu.dram_bandwidth.value * share);
}

// A block takes kQueries queries of one head past all keys; too few blocks are cut along the
// keys as in flash decoding. `work.flops` tells what a causal mask saves, and what a backward
// pass costs besides.
KernelTime time_attention(const KernelWork& work, const hardware::GpuSpec& gpu,
                          const Efficiency& efficiency) {
  const AttentionEfficiency& e = efficiency.attention;
  const auto queries = static_cast<double>(work.gemm.m);
  const auto keys = static_cast<double>(work.gemm.n);
  const double sms = gpu.sm_count;
  const double rows = std::ceil(queries / kQueries);
  const double blocks = std::max(1.0, rows * static_cast<double>(work.gemm.batch));
  const double waves = blocks < sms ? 1.0 : std::ceil(blocks / sms);
  const double cut = blocks < sms && queries < kQueries ? std::floor(sms / blocks) : 1.0;
  const double flops_of_sm = attention_flops_of_sm(work, gpu, efficiency, 1);
  const double block_flops = work.flops / std::max(blocks, 1.0) *
                             (rows * kQueries / std::max(queries, 1.0)) *
                             (1.0 / cut + e.key_overhead / std::max(keys, 1.0));
  const double compute = waves * block_flops / flops_of_sm;
  const double memory = attention_memory_s(work, gpu, efficiency);
  KernelTime out;
  out.duration = to_duration(e.fixed_s + std::max(compute, memory));
  out.memory_bound = memory > compute;
  out.launch = {{count(rows * cut), 1, count(static_cast<double>(work.gemm.batch))},
                {128, 1, 1}, 255, attention_tile(work, gpu)};
  return out;
}

// FlashAttention 3 (compute capability 9.0) and FlashInfer's kernels for 10.x serve single tokens
// as well beside prompts as by themselves.
bool serves_prompts_apart(const hardware::GpuSpec& gpu) {
  return gpu.compute_major == 9 || gpu.compute_major == 10;
}

// FlashAttention 2 serves single tokens beside prompts by the kernel of prompts (mha_varlen_fwd,
// run_mha_fwd_splitkv_dispatch in csrc/flash_attn): each token is a block of kRows queries of each
// head, heads that share keys have blocks of their own, keys are not cut, and the grid has as many
// blocks for it as for the longest prompt, of which all but one are empty. What a block costs is
// measured: slopes and offsets in LLMServingSim's attention profiles of the RTX 4090 and the
// RTX PRO 6000, which agree (0.82 and 0.57 of the peak, 1.27 and 1.23 times math_share at this head
// size: prompts leave SMs idle behind their longest rows; 106 to 250 keys; 0.35 and 0.35 us).
// Keys and values that the L2 cache does not hold are read again by each head: left out.
KernelTime time_singles_beside_prompts(const KernelWork& work, const hardware::GpuSpec& gpu,
                                       const Efficiency& efficiency) {
  constexpr double kRows = 64;
  constexpr double kToPrompts = 1.25;
  constexpr double kKeysBesides = 150;
  constexpr double kEmptyBlock = 0.35e-6;  // s of an SM
  const auto keys = static_cast<double>(work.gemm.n);
  const auto head = static_cast<double>(work.gemm.k);
  const double sms = gpu.sm_count;
  const double blocks = static_cast<double>(work.gemm.batch * work.gemm.m);
  const double flops_of_sm = attention_flops_of_sm(work, gpu, efficiency, kToPrompts);
  const double block_flops = 4.0 * kRows * head * (keys + kKeysBesides);
  const double rows = std::ceil(static_cast<double>(work.prompt_queries) / kRows);
  const double compute = std::ceil(blocks / sms) * block_flops / flops_of_sm +
                         blocks * (rows - 1) / sms * kEmptyBlock;
  const double memory = attention_memory_s(work, gpu, efficiency);
  return {.duration = to_duration(std::max(compute, memory)),
          .launch = {{count(rows), 1, count(blocks)}, {128, 1, 1}, 255, attention_tile(work, gpu)},
          .memory_bound = memory > compute};
}

// As PyTorch launches them: elementwise kernels 128 threads of 4 elements; rows of reductions
// likewise; multi-tensor updates 512 threads for 65,536 elements.
Launch stream_launch(const KernelWork& work) {
  if (work.kind == KernelKind::kOptimizer) {
    return {{count(work.elements / 65536.0), 1, 1}, {512, 1, 1}, 64, 0};
  }
  return {{count(work.elements / 512.0), 1, 1}, {128, 1, 1}, 32, 0};
}

// fixed + bytes / (bandwidth * dram_share), the part that the L2 cache holds l2_speedup faster.
KernelTime time_stream(const KernelWork& work, const hardware::GpuSpec& gpu,
                       const Efficiency& efficiency) {
  const StreamEfficiency& e = efficiency.streams[index_of(work.kind)];
  const double resident = std::min(work.bytes, efficiency.l2_resident_bytes);
  const double moved = work.bytes - resident + resident / efficiency.l2_speedup;
  const double seconds = e.fixed_s + moved / (gpu.dram_bandwidth.value * e.dram_share);
  return {to_duration(seconds), stream_launch(work), true};
}

}  // namespace

bool blocks_stay(const KernelWork& work, const hardware::GpuSpec& gpu) {
  const bool product = work.kind == KernelKind::kGemm || work.kind == KernelKind::kConvolution;
  return product && gpu.compute_major >= 9 && work.precision != Precision::kFp32;
}

KernelTime time_kernel(const KernelWork& work, const hardware::GpuSpec& gpu,
                       const Efficiency& efficiency, std::uint32_t sm_carveout) {
  switch (work.kind) {
    case KernelKind::kGemm:
    case KernelKind::kConvolution:
      return time_gemm(work, gpu, efficiency, sm_carveout);
    case KernelKind::kAttention:
      return work.prompt_queries > 0 && !serves_prompts_apart(gpu)
                 ? time_singles_beside_prompts(work, gpu, efficiency)
                 : time_attention(work, gpu, efficiency);
    default:
      return time_stream(work, gpu, efficiency);
  }
}

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

namespace {

double sustained_flops(const TimedDevice& device, Precision precision) {
  const GemmEfficiency& gemm = device.efficiency.gemm;
  const bool single = computed_in(device.efficiency, precision) == Precision::kFp32;
  return peak_flops(device.efficiency, precision) *
         (single ? gemm.fp32_math_share : gemm.math_share);
}

double sustained_bandwidth(const TimedDevice& device) {
  return device.gpu.dram_bandwidth.value *
         device.efficiency.streams[index_of(KernelKind::kElementwise)].dram_share;
}

}  // namespace

double roofline_ratio(BoundBy bound, Precision precision, const TimedDevice& from,
                      const TimedDevice& to) {
  const double compute = sustained_flops(from, precision) / sustained_flops(to, precision);
  const double memory = sustained_bandwidth(from) / sustained_bandwidth(to);
  switch (bound) {
    case BoundBy::kCompute:
      return compute;
    case BoundBy::kMemory:
      return memory;
    case BoundBy::kUnknown:
      break;
  }
  return std::sqrt(compute * memory);
}

}  // namespace bubblesim::model
