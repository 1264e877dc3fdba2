// What a plan's tables say of each other: steps and operations, hand-overs, waits.
#pragma once

#include "capture/replay/job_plan.hpp"
#include "sim/base/json_reader.hpp"

namespace bubblesim::capture {

/// Reports into `root`'s faults, with the key and the row. Precondition: indices of operations
/// (streams, forms, names, edges) are within their tables.
void check_plan_steps(ObjectReader& root, const JobPlan& plan);

}  // namespace bubblesim::capture
