// Tokens that checked drafts yielded, recorded step by step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::serving {

/// A CSV whose column `accepted` says, in the order of the steps, how many of a step's drafted
/// tokens were accepted; other columns are not read. Faults, with the line: no such column, not a
/// whole number of 0 to `drafted`.
[[nodiscard]] Result<std::vector<std::uint32_t>> read_acceptance(const std::string& path,
                                                                 std::uint32_t drafted);

}  // namespace bubblesim::serving
