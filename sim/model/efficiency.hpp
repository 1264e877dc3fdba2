// The constants of the roofline, for one device and one generation of its libraries. Read from
// configs/efficiency/*.json (configs/efficiency/README.md explains each key, kernel_time.hpp uses
// them); `scripts/fit kernels` writes such a file. A fit starts from the defaults below, and keeps
// those for which it has too few rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/layer_work.hpp"

namespace bubblesim::model {

inline constexpr std::size_t kPrecisions = 5;    ///< of Precision
inline constexpr std::size_t kKernelKinds = 8;   ///< of KernelKind

[[nodiscard]] constexpr std::size_t index_of(Precision precision) {
  return static_cast<std::size_t>(precision);
}
[[nodiscard]] constexpr std::size_t index_of(KernelKind kind) {
  return static_cast<std::size_t>(kind);
}

/// Efficiency of matrix products, and of convolutions as implicit products (kernel_time.hpp). The
/// defaults are near those of the A100, which is known best.
struct GemmEfficiency {
  double math_share = 0.92;       ///< of the tensor cores' peak, for an endless tile
  double fp32_math_share = 0.85;  ///< of the CUDA cores' peak, for an endless tile
  double tile_half_size = 9.5;    ///< elements; tile size tm*tn/(tm+tn) at half of math_share
  double wave_overhead_s = 8e-7;  ///< of each wave: first loads, last stores
  double fixed_s = 4e-6;          ///< of each kernel
  double dram_share = 0.92;       ///< of DRAM bandwidth
  double sm_reach = 0.6;          ///< share of the SMs that suffices to reach dram_share
  double split_dram_share = 2.0;  ///< partial sums of split products, of DRAM bandwidth (in L2)
  double roof_exponent = 1.85;    ///< p in (compute^p + memory^p)^(1/p): how well compute and
                                  ///< memory overlap
  double idle_speedup = 0.55;     ///< share of the last wave's idle SM time that is recovered
  double hot_slowdown = 0.09;     ///< of long kernels, which the power limit slows down
  double hot_after_s = 3e-4;      ///< compute time at which half of hot_slowdown applies
};

/// Efficiency of one kind of kernels that stream through memory.
struct StreamEfficiency {
  double fixed_s = 2e-6;      ///< of each kernel
  double dram_share = 0.85;   ///< of DRAM bandwidth
};

/// Efficiency of fused attention.
struct AttentionEfficiency {
  double math_share = 0.6;        ///< of peak, for endless head size and keys
  double head_half_size = 28;     ///< head size at half of math_share
  double key_overhead = 64;       ///< fixed cost of each block of queries, as a number of keys
  double fixed_s = 4e-6;          ///< of each kernel
};

struct Efficiency {
  std::string id;          ///< file name without ".json"
  std::string software;    ///< the libraries of the kernels
  double boost_clock_hz = 0;   ///< clock at which the peaks hold
  /// FLOP/s, dense, by Precision: kFp32 of CUDA cores, the others of tensor cores. 0: the device
  /// has no such units; computed_in() gives the precision used instead.
  std::array<double, kPrecisions> peak_flops{};
  double l2_resident_bytes = 2e7;  ///< bytes of a kernel's traffic that the L2 cache serves
  double l2_speedup = 1.8;         ///< speed of that part relative to DRAM
  GemmEfficiency gemm;
  GemmEfficiency convolution;
  AttentionEfficiency attention;
  std::array<StreamEfficiency, kKernelKinds> streams;  ///< by KernelKind; unused for products
};

/// The precision in which the device computes `precision`: the same if it has such units, else as
/// frameworks do: fp16 for bf16 (fp32 if it lacks fp16, too), fp32 for tf32 and fp16, and for fp8
/// the precision in which it computes bf16.
[[nodiscard]] Precision computed_in(const Efficiency& efficiency, Precision precision);

/// Peak FLOP/s of computed_in(precision).
[[nodiscard]] double peak_flops(const Efficiency& efficiency, Precision precision);

// Reads efficiency files (configs/efficiency/*.json; each key is explained in
// configs/efficiency/README.md). As in device files, every constant is an object with its unit
// and its source:
//
//   "gemm": {"math_share": {"value": 0.91, "unit": "share", "source": "fitted: ..."}, ...}
//
// A constant without a source, with another unit, missing or unknown is a fault; all faults of a
// file are reported at once.

/// Reads everything but the id; finishes the root.
[[nodiscard]] Efficiency read_efficiency(ObjectReader& root);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`: of a
/// device ("h100"), or of a user's own file.
[[nodiscard]] CheckedResult<Efficiency> find_efficiency(std::string_view name,
                                                        const std::string& folder);

/// The file of `configs`/efficiency with the id of `gpu`, else that of the device of
/// `configs`/devices with the name of `gpu`. So a user's own device file (calibrated, say) has the
/// kernel times of the device that it describes. Fault: there is none.
[[nodiscard]] CheckedResult<Efficiency> device_efficiency(const hardware::GpuSpec& gpu,
                                                          const std::string& configs);

/// A number of an Efficiency, by its path in the file.
struct EfficiencyField {
  std::string path;       ///< "gemm/math_share"
  std::string_view unit;
  double low;             ///< least value that a file or a fit may give
  double high;
  std::function<double&(Efficiency&)> value;
};

/// All fields, in the order of a file.
[[nodiscard]] std::span<const EfficiencyField> efficiency_fields();

// Names of precisions in configs, options and messages.

/// The names of precisions, by Precision.
inline constexpr std::array<Choice<Precision>, kPrecisions> kPrecisionNames{
    {{"fp32", Precision::kFp32},
     {"tf32", Precision::kTf32},
     {"fp16", Precision::kFp16},
     {"bf16", Precision::kBf16},
     {"fp8", Precision::kFp8}}};

/// The precisions of 16 bits or more: all but fp8, the last.
inline constexpr auto kWidePrecisionNames = [] {
  std::array<Choice<Precision>, kPrecisions - 1> wide{};
  std::copy_n(kPrecisionNames.begin(), wide.size(), wide.begin());
  return wide;
}();

}  // namespace bubblesim::model
