// Reads efficiency files (configs/efficiency/*.json; each key is explained in
// configs/efficiency/README.md). As in device files, every constant is an object with its unit
// and its source:
//
//   "gemm": {"math_share": {"value": 0.91, "unit": "share", "source": "fitted: ..."}, ...}
//
// A constant without a source, with another unit, missing or unknown is a fault; all faults of a
// file are reported at once.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/model/efficiency.hpp"

namespace bubblesim::model {

/// Everything but the id; finishes the root.
[[nodiscard]] Efficiency read_efficiency(ObjectReader& root);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`: the id
/// of a device ("h100"), or another one that a user made.
[[nodiscard]] CheckedResult<Efficiency> find_efficiency(std::string_view name,
                                                        const std::string& folder);

struct EfficiencyField {
  std::string_view path;  ///< "gemm/math_share"
  std::string_view unit;
  double low;             ///< least value that a file or a fit may give
  double high;
  double& (*value)(Efficiency&);
};

/// All fields, in the order of a file.
[[nodiscard]] std::span<const EfficiencyField> efficiency_fields();

// What configs, options and messages call a precision.

/// The names of precisions, by Precision.
inline constexpr std::array<Choice<Precision>, kPrecisions> kPrecisionNames{
    {{"fp32", Precision::kFp32},
     {"tf32", Precision::kTf32},
     {"fp16", Precision::kFp16},
     {"bf16", Precision::kBf16},
     {"fp8", Precision::kFp8}}};

/// Those of 16 bits or more: fp8, the last, is left out.
inline constexpr auto kWidePrecisionNames = [] {
  std::array<Choice<Precision>, kPrecisions - 1> wide{};
  std::copy_n(kPrecisionNames.begin(), wide.size(), wide.begin());
  return wide;
}();

}  // namespace bubblesim::model
