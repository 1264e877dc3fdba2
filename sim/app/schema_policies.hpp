// "policies" of a run, as JSON Schema, from the policies' own declarations.
#pragma once

#include "sim/base/json_fwd.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::app {

/// The definition "policies", and those that it refers to.
[[nodiscard]] Json policy_definitions(const policy::Registry& policies);

}  // namespace bubblesim::app
