// Precisions that a device does not have, as frameworks handle them: bf16 becomes fp16 (of the
// same size; PyTorch's autocast and Megatron with loss scaling), tf32 becomes fp32 (PyTorch's
// switch does nothing before Ampere), fp8 is refused (Transformer Engine asks for compute
// capability 8.9).
// Which ones a device has, with sources: peak_flops of its efficiency file. What is computed in
// place of what: model::computed_in.
#pragma once

#include <optional>
#include <string>

#include "sim/base/counters.hpp"
#include "sim/model/efficiency.hpp"

namespace bubblesim::synth {

/// What is wrong with the precision on the device; nothing if it, or another in its place, will do.
[[nodiscard]] std::optional<std::string> precision_fault(const model::Efficiency& efficiency,
                                                         model::Precision precision,
                                                         const std::string& device);

/// Counts a job or an instance whose precision is replaced; a counter a pair of precisions.
void count_replaced_precision(const model::Efficiency& efficiency, model::Precision precision,
                              CounterSet& counters);

}  // namespace bubblesim::synth
