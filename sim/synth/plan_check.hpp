// Checks of a plan; faults name the nearest plan that works.
#pragma once

#include "sim/base/result.hpp"
#include "sim/pipeline/registry.hpp"
#include "sim/synth/job_plan.hpp"

namespace bubblesim::synth {

/// Checks before the job is built. Faults: sizes that do not divide the batch or fit the cluster.
[[nodiscard]] Errors check_plan(const JobRequest& request);

/// The schedule that a plan names, or its CSV file.
[[nodiscard]] Result<pipeline::PlannedSchedule> schedule_of(const PlanSpec& plan);

/// Faults: ranks that need more memory than the device has, with plans that fit.
[[nodiscard]] Errors check_memory(const ParallelPlan& plan);

}  // namespace bubblesim::synth
