#include "sim/report/pareto_front.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace bubblesim::report {
namespace {

/// Costs: less is better in both.
struct Candidate {
  double x = 0;
  double y = 0;
  std::size_t index = 0;
};

double cost(double value, sweep::Better better) {
  return better == sweep::Better::kLess ? value : -value;
}

}  // namespace

std::vector<std::size_t> pareto_front(std::span<const TradePoint> points, sweep::Better better_x,
                                      sweep::Better better_y) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [x, y] = points[i];
    if (!x || !y || !std::isfinite(*x) || !std::isfinite(*y)) continue;
    candidates.push_back({cost(*x, better_x), cost(*y, better_y), i});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.x, a.y, a.index) < std::tie(b.x, b.y, b.index);
  });
  // By rising x: a point stays if its y is less than that of all before it, or it equals the last.
  std::vector<Candidate> front;
  for (const Candidate& candidate : candidates) {
    const bool same = !front.empty() && candidate.x == front.back().x &&
                      candidate.y == front.back().y;
    if (front.empty() || same || candidate.y < front.back().y) front.push_back(candidate);
  }
  std::vector<std::size_t> indices;
  for (const Candidate& candidate : front) indices.push_back(candidate.index);
  std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
    return *points[a].x < *points[b].x;
  });
  return indices;
}

}  // namespace bubblesim::report
