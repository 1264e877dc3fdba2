// Reads a job's parts from the files of configs that it names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/synth/job_plan.hpp"
#include "sim/synth/plan_spec.hpp"

namespace bubblesim::synth {

/// "data=8", "/gradients/bucket=50MiB"; the leading "/" may be left out.
[[nodiscard]] Result<PlanChange> parse_plan_change(const std::string& text);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`. Changes
/// are made before the plan is checked. Fault: one of them overwrites an earlier one.
[[nodiscard]] CheckedResult<PlanSpec> find_plan(const std::string& name, const std::string& folder,
                                                const std::vector<PlanChange>& changes);

/// `configs` holds models/, plans/, clusters/, devices/, efficiency/ and software/. Every name that
/// is not found is a fault; all are reported at once.
[[nodiscard]] CheckedResult<JobRequest> find_job(const JobNames& names,
                                                 const std::string& configs);

// Precisions that a device does not have, as frameworks handle them: bf16 becomes fp16 (of the same
// size; PyTorch's autocast and Megatron with loss scaling), tf32 becomes fp32 (PyTorch's switch
// does nothing before Ampere), fp8 is refused (Transformer Engine asks for compute capability 8.9).
// peak_flops of a device's efficiency file has its precisions, with sources; model::computed_in has
// the replacements.

/// The fault of the precision on the device; nothing if it, or a replacement, can be used.
[[nodiscard]] std::optional<std::string> precision_fault(const model::Efficiency& efficiency,
                                                         model::Precision precision,
                                                         const std::string& device);

/// Counts a job or an instance whose precision is replaced, with a counter for each pair of
/// precisions.
void count_replaced_precision(const model::Efficiency& efficiency, model::Precision precision,
                              CounterSet& counters);

}  // namespace bubblesim::synth
