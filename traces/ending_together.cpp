#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "traces/meeting_key.hpp"

namespace bubblesim::traces {
namespace {

/// Ends of one collective lie within this of each other, mostly: 13 of 15 all-reduces of two V100s
/// among four, 11 of two others.
constexpr Duration kMargin = std::chrono::microseconds(100);
/// So many ends tell.
constexpr std::size_t kMostEnds = 512;

/// The margin that is left of it, over those that end together; nothing where fewer than half do.
Duration agreement(const std::vector<TraceTime>& a, const std::vector<TraceTime>& b) {
  Duration sum{};
  std::size_t together = 0;
  const std::size_t most_a = std::min(a.size(), kMostEnds);
  const std::size_t most_b = std::min(b.size(), kMostEnds);
  for (std::size_t i = 0, j = 0; i < most_a && j < most_b;) {
    const Duration apart = a[i] - b[j];
    if (std::chrono::abs(apart) <= kMargin) {
      sum += kMargin - std::chrono::abs(apart);
      ++together;
      ++i;
      ++j;
    } else {
      ++(apart < Duration{} ? i : j);
    }
  }
  return 2 * together >= std::min(most_a, most_b) ? sum : Duration{};
}

}  // namespace

std::vector<std::size_t> ending_together(const std::vector<std::vector<TraceTime>>& ends) {
  struct Agreeing {
    std::size_t a, b;
    Duration sum;
  };
  std::vector<Agreeing> pairs;
  std::vector<Duration> best(ends.size());
  std::vector<std::size_t> group(ends.size());
  for (std::size_t a = 0; a < ends.size(); ++a) {
    group[a] = a;
    for (std::size_t b = 0; b < a; ++b) {
      const Duration sum = agreement(ends[a], ends[b]);
      if (sum == Duration{}) continue;
      pairs.push_back({a, b, sum});
      best[a] = std::max(best[a], sum);
      best[b] = std::max(best[b], sum);
    }
  }
  for (const Agreeing& pair : pairs) {
    if (2 * pair.sum < std::max(best[pair.a], best[pair.b])) continue;
    const auto [first, later] = std::minmax(group[pair.a], group[pair.b]);
    if (first != later) std::ranges::replace(group, std::size_t{later}, std::size_t{first});
  }
  return group;
}

}  // namespace bubblesim::traces
