// The constants of the roofline, for one device and one generation of its libraries. Read from
// configs/efficiency/*.json (configs/efficiency/README.md explains each key, and
// sim/model/kernel_time.hpp the formulas); `bubblesim fit kernels` writes such a file.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "sim/model/kernel_work.hpp"

namespace bubblesim::model {

inline constexpr std::size_t kPrecisions = 5;    ///< of Precision
inline constexpr std::size_t kKernelKinds = 8;   ///< of KernelKind

[[nodiscard]] constexpr std::size_t index_of(Precision precision) {
  return static_cast<std::size_t>(precision);
}
[[nodiscard]] constexpr std::size_t index_of(KernelKind kind) {
  return static_cast<std::size_t>(kind);
}

/// Of matrix products, also of convolutions as implicit products.
struct GemmEfficiency {
  double math_share = 0.8;      ///< of peak, by an endless tile with no prologue
  double tile_half_size = 16;   ///< elements: tile size tm*tn/(tm+tn) at half of math_share
  double wave_overhead_s = 2e-6;   ///< of each wave: first loads, last stores
  double fixed_s = 2e-6;        ///< of each kernel
  double dram_share = 0.8;      ///< of DRAM bandwidth
  double l2_bytes_per_s = 4e12; ///< at which tiles are loaded again from L2
};

/// Of kernels that stream through memory: a kind each.
struct StreamEfficiency {
  double fixed_s = 2e-6;      ///< of each kernel
  double dram_share = 0.8;    ///< of DRAM bandwidth
};

/// Of fused attention.
struct AttentionEfficiency {
  double math_share = 0.6;        ///< of peak, head size and sequence endless
  double head_half_size = 32;     ///< head size at half of math_share
  double fixed_s = 4e-6;          ///< of each kernel
  double key_overhead = 64;       ///< keys that a block of queries costs besides its own
};

struct Efficiency {
  std::string id;          ///< file name without ".json"
  std::string software;    ///< whose kernels these are: libraries and their versions
  /// FLOP/s of dense tensor-core (fp32: CUDA-core) arithmetic at `boost_clock_hz`, by Precision;
  /// 0: the device does not have it, and the next wider precision stands in.
  std::array<double, kPrecisions> peak_flops{};
  double boost_clock_hz = 0;   ///< of the peaks
  GemmEfficiency gemm;
  GemmEfficiency convolution;
  AttentionEfficiency attention;
  std::array<StreamEfficiency, kKernelKinds> streams;  ///< by KernelKind; products: unused
};

/// Peak of `precision` on the device, or of the next wider one that it has.
[[nodiscard]] double peak_flops(const Efficiency& efficiency, Precision precision);

}  // namespace bubblesim::model
