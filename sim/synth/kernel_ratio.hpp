// How much longer a recorded kernel takes on another device, by the roof that its name puts it
// under (sim/model/roofline_ratio.hpp has the formula).
//
// A recording has no shapes of operands, so nothing finer is known: tiles and waves that fit one
// device better than the other are not modelled.
#pragma once

#include <optional>
#include <string_view>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/synth/retarget.hpp"

namespace bubblesim::synth {

/// A device and how well kernels use it.
struct RooflineDevice {
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
};

/// The precision in which a product's kernel computes, by the words that cuBLAS, cuDNN, CUTLASS and
/// nvjet put in its name ("bf16", "f16_s16816gemm", "h884", "tf32", "sgemm"); nothing: no word.
[[nodiscard]] std::optional<model::Precision> precision_of(std::string_view kernel_name);

/// A name without a precision counts as bfloat16, or what `from` computes that in.
[[nodiscard]] KernelRatio kernel_ratio(RooflineDevice from, RooflineDevice to);

}  // namespace bubblesim::synth
