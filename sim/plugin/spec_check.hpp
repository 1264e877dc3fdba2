// Whether a policy that comes from outside the tree says of itself what it must: what is a
// programmer's fault inside the tree is a fault of the input there.
#pragma once

#include <string_view>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::plugin {

/// snake_case: a lower-case letter, then lower-case letters, digits and underscores; at most 64.
[[nodiscard]] bool is_policy_name(std::string_view name);

/// A name that may stand in a config and is not taken in `registry`, a summary, a maker, and
/// parameters whose default, range and choices agree. The fault names none of policy and file.
[[nodiscard]] Result<void> check_spec(const policy::PolicySpec& spec,
                                      const policy::Registry& registry);

}  // namespace bubblesim::plugin
