// A fleet's plan as text, as CSV with a row a placement, and as JSON.
#pragma once

#include <string>

#include "sim/advise/fleet/fleet_plan.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim::advise {

/// Kinds and works; jobs one by one are in the other forms.
[[nodiscard]] std::string fleet_text(const FleetPlan& plan);
/// "1,000 jobs of 20 kinds, 3 works: 310 of 8,000 GPU-hours a day gained, training loses 12".
[[nodiscard]] std::string fleet_summary(const FleetPlan& plan);
/// Columns: job, kind (its first job), gpus, work, hours, policy, setting, gained_gpu_hours,
/// lost_gpu_hours, requests. A job that takes nothing has a row with an empty work.
[[nodiscard]] std::string fleet_csv(const FleetPlan& plan);
/// Keys are in configs/README.md ("A fleet").
[[nodiscard]] Json fleet_json(const FleetPlan& plan);

}  // namespace bubblesim::advise
