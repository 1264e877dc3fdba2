// Everything that a job is made of, read from the files of configs that it names.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/synth/job_names.hpp"
#include "sim/synth/job_plan.hpp"

namespace bubblesim::synth {

/// "data=8", "/gradients/bucket=50MiB"; the leading "/" may be left out.
[[nodiscard]] Result<PlanChange> parse_plan_change(const std::string& text);

/// Finds a plan as find_plan of plan_file.hpp does, with changes made before it is checked. Fault:
/// one of them overwrites an earlier one.
[[nodiscard]] CheckedResult<PlanSpec> find_plan(const std::string& name, const std::string& folder,
                                                const std::vector<PlanChange>& changes);

/// `configs` holds models/, plans/, clusters/, devices/, efficiency/ and software/. Every name that
/// is not found is a fault; all are reported at once.
[[nodiscard]] CheckedResult<JobRequest> find_job(const JobNames& names, const std::string& configs);

}  // namespace bubblesim::synth
