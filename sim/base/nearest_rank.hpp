// Percentiles by nearest rank: every percentile is a value that was measured.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bubblesim {

/// ceil(percent / 100 * count), from 1 to count. The product is formed first: 0.95 * 100 is not
/// 95 in binary, 95 * 100 / 100 is.
[[nodiscard]] inline std::uint64_t nearest_rank(double percent, std::uint64_t count) {
  const double rank = std::ceil(percent * static_cast<double>(count) / 100.0);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(rank), 1, count);
}

/// The value at that rank of ascending values, of which there is at least one.
template <class Value>
[[nodiscard]] const Value& percentile_of(const std::vector<Value>& ascending, double percent) {
  return ascending[static_cast<std::size_t>(nearest_rank(percent, ascending.size())) - 1];
}

}  // namespace bubblesim
