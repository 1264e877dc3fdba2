// What a plan's tables say of each other: indices, steps and operations, hand-overs, waits.
#pragma once

#include <string>

#include "capture/replay/job_plan.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// None of a plan that can be run. `label` stands for the file in messages.
[[nodiscard]] Errors plan_faults(const JobPlan& plan, const std::string& label);

}  // namespace bubblesim::capture
