// How long a kernel takes on a GPU, and how it is launched: a roofline with an efficiency curve
// for each kind of kernel, fitted to measured kernels (`scripts/fit`).
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/layer_work.hpp"

namespace bubblesim::model {

/// A kernel as launched.
struct Launch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint16_t registers_per_thread = 0;
  std::uint32_t shared_memory_bytes = 0;  ///< a block
};

struct KernelTime {
  Duration duration{};       ///< alone on the GPU, rounded to the nearest nanosecond, >= 1
  Launch launch;
  bool memory_bound = false;  ///< the memory side of the roofline is the longer one
};

/// Whether a product's blocks stay on their SMs and take tile after tile (a persistent kernel), so
/// that it can leave some of the SMs to others.
[[nodiscard]] bool blocks_stay(const KernelWork& work, const hardware::GpuSpec& gpu);

/// The time of `work` alone on `gpu`. Products whose blocks stay leave `sm_carveout` SMs free:
/// fewer than `gpu` has (torch._C._set_sm_carveout_experimental, pytorch/pytorch pull 147966).
[[nodiscard]] KernelTime time_kernel(const KernelWork& work, const hardware::GpuSpec& gpu,
                                     const Efficiency& efficiency, std::uint32_t sm_carveout = 0);

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
  double seconds = 0;  ///< of the whole kernel
};

/// The fastest plan on all SMs but `carveout`; of equal ones the one with the larger tile and the
/// smaller split.
[[nodiscard]] GemmPlan plan_gemm(const KernelWork& work, const hardware::GpuSpec& gpu,
                                 const Efficiency& efficiency, std::uint32_t carveout = 0);

/// The time of one given plan.
[[nodiscard]] GemmPlan time_plan(const KernelWork& work, Tile tile, std::uint32_t split,
                                 const hardware::GpuSpec& gpu, const Efficiency& efficiency,
                                 std::uint32_t carveout = 0);

// Re-targeting of recorded kernels: the factor on a kernel's time on another GPU, if only its bound
// is known.
//
//   compute   ratio of the sustained FLOP/s in `precision`: peak x gemm math share
//   memory    ratio of the sustained bandwidths: DRAM bandwidth x elementwise share
//   unknown   geometric mean of the two
//
// The ratio ignores effects that do not scale (the fixed time of small kernels, waves that fill one
// device and not the other): it extrapolates, and results that use it say so.

enum class BoundBy : std::uint8_t { kCompute, kMemory, kUnknown };

/// A GPU with the constants of its kernels; refers to both.
struct TimedDevice {
  const hardware::GpuSpec& gpu;
  const Efficiency& efficiency;
};

/// Duration on `to` divided by duration on `from`.
[[nodiscard]] double roofline_ratio(BoundBy bound, Precision precision, const TimedDevice& from,
                                    const TimedDevice& to);

}  // namespace bubblesim::model
