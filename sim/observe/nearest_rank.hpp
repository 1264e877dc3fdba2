// The rank of a percentile, as latency.hpp defines it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace bubblesim::observe {

/// ceil(percent / 100 * count), from 1 to count. The product is formed first: 0.95 * 100 is not
/// 95 in binary, 95 * 100 / 100 is.
[[nodiscard]] inline std::uint64_t nearest_rank(double percent, std::uint64_t count) {
  const double rank = std::ceil(percent * static_cast<double>(count) / 100.0);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(rank), 1, count);
}

}  // namespace bubblesim::observe
