#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/nearest_rank.hpp"
#include "traces/meeting_key.hpp"

namespace bubblesim::traces {
namespace {

/// Ends of one collective lie within this of each other, mostly: 13 of 15 all-reduces of two V100s
/// among four, 11 of two others.
constexpr Duration kMargin = std::chrono::microseconds(100);
/// So many ends tell.
constexpr std::size_t kMostEnds = 512;

/// How far ends of two streams are apart: the median, of the one that has fewer.
Duration distance(const std::vector<TraceTime>& a, const std::vector<TraceTime>& b) {
  std::vector<Duration> distances;
  const std::size_t most_a = std::min(a.size(), kMostEnds);
  const std::size_t most_b = std::min(b.size(), kMostEnds);
  for (std::size_t i = 0, j = 0; i < most_a && j < most_b;) {
    const Duration apart = a[i] - b[j];
    const bool together = std::chrono::abs(apart) < kMargin;
    if (together) distances.push_back(std::max(std::chrono::abs(apart), kSameEnd));
    const bool first = together || apart < Duration{};
    j += together || !first ? 1 : 0;
    i += first ? 1 : 0;
  }
  distances.resize(std::max<std::size_t>(std::min(most_a, most_b), 1), kMargin);
  return upper_median(distances);
}

struct StreamPair {
  Duration apart{};
  std::size_t a = 0;
  std::size_t b = 0;
};

/// Single linkage: the nearest streams join first, then what is about as near.
class Linkage {
 public:
  explicit Linkage(const std::vector<UnnamedStream>& streams) : streams_(streams) {
    for (std::size_t i = 0; i < streams.size(); ++i) group_.push_back(i);
    size_.assign(streams.size(), 1);
    height_.assign(streams.size(), Duration{});
    doubtful_.assign(streams.size(), false);
  }

  void link(const StreamPair& pair) {
    const auto [a, b] = std::minmax(group_[pair.a], group_[pair.b]);
    if (a == b) return;
    const Duration inside = std::max(height_[a], height_[b]);
    const bool one_alone = size_[a] == 1 || size_[b] == 1;
    if (inside > Duration{} && pair.apart >= kSeparate * inside) return;
    if (!one_alone && pair.apart >= kUnited * inside) {
      doubtful_[a] = doubtful_[b] = true;
      return;
    }
    std::ranges::replace(group_, std::size_t{b}, std::size_t{a});
    size_[a] += size_[b];
    height_[a] = std::max(inside, pair.apart);
    doubtful_[a] = doubtful_[a] || doubtful_[b];
  }

  std::vector<std::size_t> groups(std::vector<HeldTogether> held) && {
    const std::vector<HeldTogether> groups = held_together();
    held.insert(held.end(), groups.begin(), groups.end());
    std::vector<std::size_t> found = group_;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto holds = [&](const HeldTogether& other) {
        return holds_part(other, groups[group_[i]]);
      };
      if (doubtful_[group_[i]] || std::ranges::any_of(held, holds)) found[i] = i;
    }
    return found;
  }

 private:
  /// Groups this much wider apart than what is joined are others; less than that, one.
  static constexpr int kUnited = 2;
  static constexpr int kSeparate = 4;

  /// By group.
  [[nodiscard]] std::vector<HeldTogether> held_together() const {
    std::vector<HeldTogether> held(group_.size());
    for (std::size_t i = 0; i < group_.size(); ++i) {
      held[group_[i]].ranks.insert(streams_[i].rank);
      held[group_[i]].times = std::max(held[group_[i]].times, streams_[i].ends.size());
    }
    return held;
  }

  static bool holds_part(const HeldTogether& other, const HeldTogether& group) {
    std::vector<std::size_t> common;
    std::ranges::set_intersection(other.ranks, group.ranks, std::back_inserter(common));
    return 2 * other.times >= group.times && common.size() > 1 &&
           common.size() < group.ranks.size();
  }

  const std::vector<UnnamedStream>& streams_;
  std::vector<std::size_t> group_;  ///< by stream: the group's first
  std::vector<std::size_t> size_;   ///< by group
  std::vector<Duration> height_;    ///< the widest link
  std::vector<bool> doubtful_;
};

}  // namespace

std::vector<std::size_t> ending_together(const std::vector<UnnamedStream>& streams,
                                         std::vector<HeldTogether> held) {
  std::vector<StreamPair> pairs;
  for (std::size_t a = 0; a < streams.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (streams[a].rank == streams[b].rank) continue;
      const Duration apart = distance(streams[a].ends, streams[b].ends);
      if (apart < kMargin) pairs.push_back({apart, a, b});
    }
  }
  std::ranges::sort(pairs, {}, [](const StreamPair& pair) {
    return std::tuple(pair.apart, pair.a, pair.b);
  });
  Linkage linkage(streams);
  for (const StreamPair& pair : pairs) linkage.link(pair);
  return std::move(linkage).groups(std::move(held));
}

}  // namespace bubblesim::traces
