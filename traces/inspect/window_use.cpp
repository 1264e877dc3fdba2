// Sums over a window: busy, bubbles by cause and length, gaps, SM cover.
#include "traces/inspect/window_use.hpp"

#include <algorithm>
#include <cstddef>

#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

std::size_t bucket_of(Duration length) {
  const auto limit = std::upper_bound(kLengthBucketLimits.begin(), kLengthBucketLimits.end(),
                                      length);
  return static_cast<std::size_t>(limit - kLengthBucketLimits.begin());
}

std::size_t index_of(BubbleCause cause) { return static_cast<std::size_t>(cause); }

void add_bubbles(const DeviceUse& use, const std::vector<BubbleSegment>& segments,
                 Interval window, WindowUse& sums) {
  auto segment = segments.begin();
  for (const Interval& bubble : gaps_within(use.own, window)) {
    LengthBucket& bucket = sums.lengths[bucket_of(bubble.length())];
    ++sums.bubbles;
    ++bucket.count;
    bucket.total += bubble.length();
    sums.longest_bubble = std::max(sums.longest_bubble, bubble.length());
    while (segment != segments.end() && segment->span.end <= bubble.begin) ++segment;
    for (auto part = segment; part != segments.end() && part->span.begin < bubble.end; ++part) {
      const Duration length = std::min(part->span.end, bubble.end) -
                              std::max(part->span.begin, bubble.begin);
      bucket.by_cause[index_of(part->cause)] += length;
      sums.by_cause[index_of(part->cause)] += length;
    }
  }
}

void add_gaps(const DeviceUse& use, Interval window, WindowUse& sums) {
  for (const Interval& gap : gaps_within(use.busy, window)) {
    ++sums.gaps;
    sums.gaps_100us += gap.length() >= std::chrono::microseconds{100} ? 1 : 0;
    sums.gaps_1ms += gap.length() >= std::chrono::milliseconds{1} ? 1 : 0;
  }
}

struct BlockChange {
  TraceTime at{};
  std::int64_t blocks = 0;
};

std::vector<BlockChange> block_changes(const RankTrace& rank, Interval window) {
  std::vector<BlockChange> changes;
  for (const DeviceOp& op : rank.device_ops) {
    const TraceTime from = std::max(op.start, window.begin);
    const TraceTime to = std::min(op.end(), window.end);
    if (from >= to || !has_known_shape(rank, op)) continue;
    constexpr std::uint64_t kManyBlocks = std::uint64_t{1} << 32;  // keeps the sum within range
    const auto blocks = static_cast<std::int64_t>(
        std::min(rank.shapes[op.shape].blocks(), kManyBlocks));
    changes.push_back({from, blocks});
    changes.push_back({to, -blocks});
  }
  std::sort(changes.begin(), changes.end(),
            [](const BlockChange& a, const BlockChange& b) { return a.at < b.at; });
  return changes;
}

void add_sm_cover(const RankTrace& rank, Interval window, WindowUse& sums) {
  const auto sms = static_cast<std::int64_t>(rank.device.sm_count);
  const std::vector<BlockChange> changes = block_changes(rank, window);
  if (sms == 0 || changes.empty()) return;
  sums.sm_known = window.length();
  std::int64_t blocks = 0;
  TraceTime last = window.begin;
  for (const BlockChange& change : changes) {
    const double share = static_cast<double>(std::min(blocks, sms)) / static_cast<double>(sms);
    sums.sm_time_ns += share * static_cast<double>(to_ns(change.at - last));
    blocks += change.blocks;
    last = change.at;
  }
}

}  // namespace

WindowUse window_use(const RankTrace& rank, const DeviceUse& use,
                     const std::vector<BubbleSegment>& segments, Interval window) {
  WindowUse sums;
  sums.length = window.length();
  if (sums.length <= Duration{}) return sums;
  const Intervals own = clip(use.own, window);
  std::vector<Interval> any_collective = use.collective;
  any_collective.insert(any_collective.end(), use.peer.begin(), use.peer.end());
  const Intervals communication = clip(unite(std::move(any_collective)), window);
  sums.busy = total_length(clip(use.busy, window));
  sums.own = total_length(own);
  sums.communication = total_length(communication);
  sums.overlapped = total_length(intersect(own, communication));
  add_bubbles(use, segments, window, sums);
  add_gaps(use, window, sums);
  add_sm_cover(rank, window, sums);
  return sums;
}

std::optional<double> WindowUse::sm_cover() const {
  if (sm_known <= Duration{}) return std::nullopt;
  return sm_time_ns / static_cast<double>(to_ns(sm_known));
}

void WindowUse::add(const WindowUse& other) {
  length += other.length;
  busy += other.busy;
  own += other.own;
  communication += other.communication;
  overlapped += other.overlapped;
  for (std::size_t cause = 0; cause < kBubbleCauseCount; ++cause) {
    by_cause[cause] += other.by_cause[cause];
    for (std::size_t i = 0; i < kLengthBucketCount; ++i) {
      lengths[i].by_cause[cause] += other.lengths[i].by_cause[cause];
    }
  }
  for (std::size_t i = 0; i < kLengthBucketCount; ++i) {
    lengths[i].count += other.lengths[i].count;
    lengths[i].total += other.lengths[i].total;
  }
  bubbles += other.bubbles;
  longest_bubble = std::max(longest_bubble, other.longest_bubble);
  gaps += other.gaps;
  gaps_100us += other.gaps_100us;
  gaps_1ms += other.gaps_1ms;
  sm_time_ns += other.sm_time_ns;
  sm_known += other.sm_known;
}

Iterations iterations_of(const RankPass& pass, const DeviceUse& use) {
  Iterations iterations;
  iterations.marked = pass.marked;
  iterations.used = pass.count;
  iterations.host_time = pass.host_time;
  iterations.device_time = pass.device_time;
  iterations.length = pass.length;
  for (const RecordedIteration& recorded : pass.recorded) {
    Iteration iteration;
    iteration.number = pass.marked ? recorded.number : -1;
    iteration.span = recorded.host;
    iteration.use = recorded.use;
    iteration.busy = total_length(clip(use.busy, iteration.span));
    iteration.own = total_length(clip(use.own, iteration.span));
    iterations.all.push_back(iteration);
  }
  return iterations;
}

Duration Iterations::steady_mean() const {
  return used == 0 ? Duration{} : length / static_cast<std::int64_t>(used);
}

Duration Iterations::shortest() const {
  Duration least = all.empty() ? Duration{} : Duration::max();
  for (const Iteration& iteration : all) least = std::min(least, iteration.span.length());
  return least;
}

Duration Iterations::longest() const {
  Duration most{};
  for (const Iteration& iteration : all) most = std::max(most, iteration.span.length());
  return most;
}

}  // namespace bubblesim::traces
