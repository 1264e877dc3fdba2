// The list of the policies that come with bubblesim. A new policy adds its line here.
#pragma once

#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

[[nodiscard]] policy::PolicySpec exclusive_spec();
[[nodiscard]] policy::PolicySpec time_slicing_spec();
[[nodiscard]] policy::PolicySpec mps_spec();
[[nodiscard]] policy::PolicySpec mig_spec();
[[nodiscard]] policy::PolicySpec stream_priority_spec();
[[nodiscard]] policy::PolicySpec green_context_spec();
[[nodiscard]] policy::PolicySpec gpreempt_spec();
[[nodiscard]] policy::PolicySpec tgs_spec();
[[nodiscard]] policy::PolicySpec antman_spec();
[[nodiscard]] policy::PolicySpec specinf_spec();
[[nodiscard]] policy::PolicySpec dilu_spec();
[[nodiscard]] policy::PolicySpec orion_spec();
[[nodiscard]] policy::PolicySpec pipefill_spec();
[[nodiscard]] policy::PolicySpec freeride_spec();
[[nodiscard]] policy::PolicySpec reef_spec();
[[nodiscard]] policy::PolicySpec tally_spec();
[[nodiscard]] policy::PolicySpec vcuda_spec();
[[nodiscard]] policy::PolicySpec xsched_spec();
[[nodiscard]] policy::PolicySpec ideal_spec();
[[nodiscard]] policy::PolicySpec ideal_spatial_spec();

/// All of these policies, in this order.
[[nodiscard]] policy::Registry builtin_policies();

/// A system that appears only in published tables of measurements; users cannot run it.
[[nodiscard]] policy::PolicySpec tally_tgs_spec();
[[nodiscard]] policy::Registry judged_policies();

}  // namespace bubblesim::policies
