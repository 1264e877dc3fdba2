// Loads policies from shared libraries into a registry. Nothing of a library but its static
// initialisers runs before its contract version and ABI are checked.
//
// A library stays loaded as long as any copy of one of its specs lives; policies and placers must
// be gone before the registry that they were made from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::plugin {

/// The file for `wanted`: a path (with a "/", or a file of this folder), else the file "libNAME.so"
/// or NAME in the first of `folders` that has it. Fault: no such file, with the places searched.
[[nodiscard]] Result<std::string> find_policy_library(std::string_view wanted,
                                                      std::span<const std::string> folders);

/// Adds all policies of the library to the registry, in its order, or none of them. Returns their
/// names. Faults name the file: not a library, not bubblesim's, another contract version or ABI, an
/// incomplete policy, a name that is taken.
[[nodiscard]] Result<std::vector<std::string>> load_policies(const std::string& path,
                                                             policy::Registry& registry);

// Checks the declaration of a policy from outside the tree. An error there is an input fault; in a
// policy of the tree it is a programmer's fault.

/// snake_case: a lower-case letter, then lower-case letters, digits and underscores; at most 64.
[[nodiscard]] bool is_policy_name(std::string_view name);

/// Checks that the spec has a name allowed in a config and not taken in `registry`, a summary, a
/// maker, and parameters whose default, range and choices agree. The fault names neither the policy
/// nor the file.
[[nodiscard]] Result<void> check_spec(const policy::PolicySpec& spec,
                                      const policy::Registry& registry);

}  // namespace bubblesim::plugin
