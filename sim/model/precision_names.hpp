// What configs, options and messages call a precision.
#pragma once

#include <algorithm>
#include <array>

#include "sim/base/json_reader.hpp"
#include "sim/model/efficiency.hpp"

namespace bubblesim::model {

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
