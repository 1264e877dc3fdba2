// Points that no other point beats in both of two figures.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sim/sweep/remaining.hpp"

namespace bubblesim::report {

struct TradePoint {
  std::optional<double> x;
  std::optional<double> y;
};

/// Indices of the points that no other beats: none is at least as good in both and better in one.
/// Equal points are on the front together. Points without one of the two, or with one that is not
/// finite, are not on it and beat none. Indices come in the order of x, then of the index. n log n.
[[nodiscard]] std::vector<std::size_t> pareto_front(std::span<const TradePoint> points,
                                                    sweep::Better better_x, sweep::Better better_y);

}  // namespace bubblesim::report
