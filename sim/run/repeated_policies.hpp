// A run may have a policy with several parameters, but no policy with the same ones twice: its
// tables would have two rows that look alike.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/run/run_config.hpp"

namespace bubblesim::run {

/// The first choice before `at` that is the same, policy and parameters; nothing: there is none.
[[nodiscard]] std::optional<std::size_t> same_before(const std::vector<PolicyChoice>& choices,
                                                     std::size_t at);

/// A fault a choice that is there before, at one place for all: an option, a list of names.
[[nodiscard]] Errors repeated_policies(const std::vector<PolicyChoice>& choices,
                                       const std::string& file, const std::string& place);

}  // namespace bubblesim::run
