#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
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
/// Beyond so many streams each is taken alone, so that hostile files end in seconds.
constexpr std::size_t kMostStreams = 4096;
/// Groups this much further apart than what is in them are others; less than that, one.
constexpr int kUnited = 2;
constexpr int kSeparate = 4;

/// How far ends of two streams are apart: the median, of the one that has fewer.
Duration distance(const std::vector<TraceTime>& a, const std::vector<TraceTime>& b) {
  std::vector<Duration> distances;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Duration apart = a[i] - b[j];
    const bool together = std::chrono::abs(apart) < kMargin;
    if (together) distances.push_back(std::max(std::chrono::abs(apart), kSameEnd));
    const bool first = apart < Duration{};
    i += together || first ? 1 : 0;
    j += together || !first ? 1 : 0;
  }
  distances.resize(std::min(a.size(), b.size()), kMargin);
  return upper_median(distances);
}

struct Group : HeldTogether {
  Duration widest{};  ///< of the links in it
  bool doubtful = false;
};

struct Link {
  Duration apart{};
  std::size_t a = 0;
  std::size_t b = 0;
};

/// Single linkage: what is nearest joins first. `group_of` each stream: into `groups`.
void join(const Link& link, std::vector<std::size_t>& group_of, std::vector<Group>& groups) {
  const auto [first, later] = std::minmax({group_of[link.a], group_of[link.b]});
  Group& a = groups[first];
  Group& b = groups[later];
  const Duration inside = std::max(a.widest, b.widest);
  const bool separate = inside > Duration{} && link.apart >= kSeparate * inside;
  if (first == later || separate) return;
  if (a.ranks.size() > 1 && b.ranks.size() > 1 && link.apart >= kUnited * inside) {
    a.doubtful = b.doubtful = true;
    return;
  }
  std::ranges::replace(group_of, later, first);
  a.ranks.merge(b.ranks);
  a.times = std::max(a.times, b.times);
  a.widest = std::max(inside, link.apart);
  a.doubtful = a.doubtful || b.doubtful;
}

bool holds_part(const HeldTogether& other, const HeldTogether& group) {
  std::vector<std::size_t> common;
  std::ranges::set_intersection(other.ranks, group.ranks, std::back_inserter(common));
  return 2 * other.times >= group.times && common.size() > 1 && common.size() < group.ranks.size();
}

}  // namespace

std::map<StreamOfRank, std::set<std::size_t>> ending_together(
    std::map<StreamOfRank, std::vector<TraceTime>> ends, std::vector<HeldTogether> held) {
  std::vector<Group> groups;
  std::vector<std::size_t> group_of;
  std::vector<Link> links;
  for (auto a = ends.begin(); a != ends.end(); ++a) {
    std::ranges::sort(a->second);
    a->second.resize(std::min(a->second.size(), kMostEnds));
    std::size_t place = 0;
    for (auto b = ends.begin(); b != a && ends.size() <= kMostStreams; ++b, ++place) {
      if (a->first.first == b->first.first) continue;
      const Duration apart = distance(a->second, b->second);
      if (apart < kMargin) links.push_back({apart, groups.size(), place});
    }
    group_of.push_back(groups.size());
    groups.push_back({{{a->first.first}, a->second.size()}, {}, false});
  }
  std::ranges::stable_sort(links, {}, &Link::apart);
  for (const Link& link : links) join(link, group_of, groups);
  held.insert(held.end(), groups.begin(), groups.end());
  std::map<StreamOfRank, std::set<std::size_t>> found;
  for (const auto& [stream, times] : ends) {
    const Group& group = groups[group_of[found.size()]];
    const bool alone = group.doubtful || std::ranges::any_of(held, [&](const HeldTogether& other) {
                         return holds_part(other, group);
                       });
    found[stream] = alone ? std::set{stream.first} : group.ranks;
  }
  return found;
}

}  // namespace bubblesim::traces
