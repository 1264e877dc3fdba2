#include "traces/export/lanes.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace bubblesim::traces {
namespace {

template <class T>
using SmallestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

/// Trying nested lanes one by one is linear in their number, so that is bounded; what finds no
/// place in them goes to flat lanes behind them.
constexpr std::size_t kMaxNestedLanes = 16;

/// Lanes of one span at a time. Spans come in order of start.
class FlatLanes {
 public:
  std::uint32_t place(const LaneSpan& span) {
    while (!busy_.empty() && busy_.top().first <= span.start_ns) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    std::uint32_t lane = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      lane = free_.top();
      free_.pop();
    }
    busy_.emplace(span.end_ns, lane);
    return lane;
  }

 private:
  SmallestFirst<std::pair<std::int64_t, std::uint32_t>> busy_;  ///< end, lane
  SmallestFirst<std::uint32_t> free_;
  std::uint32_t count_ = 0;
};

/// Lanes of spans inside spans: each keeps the ends of those that are open, innermost last.
class NestedLanes {
 public:
  std::uint32_t place(const LaneSpan& span) {
    for (std::size_t lane = 0; lane < open_.size(); ++lane) {
      std::vector<std::int64_t>& ends = open_[lane];
      while (!ends.empty() && ends.back() <= span.start_ns) ends.pop_back();
      if (!ends.empty() && ends.back() < span.end_ns) continue;
      ends.push_back(span.end_ns);
      return static_cast<std::uint32_t>(lane);
    }
    if (open_.size() < kMaxNestedLanes) {
      open_.push_back({span.end_ns});
      return static_cast<std::uint32_t>(open_.size() - 1);
    }
    return static_cast<std::uint32_t>(kMaxNestedLanes) + overflow_.place(span);
  }

 private:
  std::vector<std::vector<std::int64_t>> open_;
  FlatLanes overflow_;
};

template <class Lanes>
std::vector<std::uint32_t> assign(const std::vector<LaneSpan>& spans) {
  std::vector<std::uint32_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (spans[a].start_ns != spans[b].start_ns) return spans[a].start_ns < spans[b].start_ns;
    return spans[a].end_ns > spans[b].end_ns;
  });
  Lanes lanes;
  std::vector<std::uint32_t> result(spans.size());
  for (const std::uint32_t index : order) result[index] = lanes.place(spans[index]);
  return result;
}

}  // namespace

std::vector<std::uint32_t> assign_lanes(const std::vector<LaneSpan>& spans, LaneShape shape) {
  return shape == LaneShape::kFlat ? assign<FlatLanes>(spans) : assign<NestedLanes>(spans);
}

}  // namespace bubblesim::traces
