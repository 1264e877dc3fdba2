// Matches two ordered lists of instants of the same events, of which either may lack some.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::workload {

/// No partner.
inline constexpr std::uint32_t kUnmatched = UINT32_MAX;

/// For each of `ends`, the index of its partner in `reference`, or kUnmatched. Partners keep their
/// order. Minimises the sum of time differences, with a cost of `gap` for each unmatched instant of
/// either list (global alignment by dynamic programming, Needleman and Wunsch 1970, within a band
/// around the diagonal). Both lists ascend. Ties favour matching. O(n * band) time and memory: n
/// instants are within 2 * `gap` of the other list, and band = 512 + the difference of lengths.
/// Nothing is matched if that takes over a gigabyte.
[[nodiscard]] std::vector<std::uint32_t> match_by_end(const std::vector<TraceTime>& reference,
                                                      const std::vector<TraceTime>& ends,
                                                      Duration gap);

}  // namespace bubblesim::workload
