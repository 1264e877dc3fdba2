// What configs, options and messages call a precision.
#pragma once

#include <array>

#include "sim/base/json_reader.hpp"
#include "sim/model/efficiency.hpp"

namespace bubblesim::model {

/// By Precision.
inline constexpr std::array<Choice<Precision>, kPrecisions> kPrecisionNames{
    {{"fp32", Precision::kFp32},
     {"tf32", Precision::kTf32},
     {"fp16", Precision::kFp16},
     {"bf16", Precision::kBf16},
     {"fp8", Precision::kFp8}}};

}  // namespace bubblesim::model
