// Chooses the view and fills the lanes.
#include "traces/inspect/timeline_lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "traces/inspect/iterations.hpp"
#include "traces/inspect/window_use.hpp"

namespace bubblesim::traces {
namespace {

/// Runs of all lanes together. A run takes at most 12 bytes of the picture, so 0.6 MB.
constexpr std::uint32_t kMaxRuns = 50'000;
constexpr std::size_t kMaxRanks = 64;
constexpr std::size_t kMaxStreams = 16;
constexpr double kWorkHeight = 20;
constexpr double kThinHeight = 12;

struct Subject {
  const RankTrace* trace;
  DeviceUse use;
};

std::vector<Subject> subjects_of(const JobTrace& job, std::size_t max_ranks) {
  const std::size_t limit = std::clamp<std::size_t>(max_ranks, 1, kMaxRanks);
  std::vector<Subject> subjects;
  for (const RankTrace& rank : job.ranks) {
    if (subjects.size() == limit) break;
    subjects.push_back({&rank, device_use(rank)});
  }
  return subjects;
}

/// The windows that are not empty; those of ranks without operations say nothing.
std::vector<Interval> windows_of(const std::vector<Subject>& subjects) {
  std::vector<Interval> windows;
  for (const Subject& subject : subjects) {
    if (subject.use.window.length() > Duration{}) windows.push_back(subject.use.window);
  }
  return windows;
}

struct View {
  TimelineOrigin origin = TimelineOrigin::kShared;
  TraceTime zero{};  ///< of the shared clock
  Duration from{};
  Duration to{};
};

View choose_view(const std::vector<Interval>& windows, const TimelineOptions& options) {
  View view;
  if (windows.empty()) return view;
  TraceTime first = windows.front().begin;
  TraceTime last = windows.front().end;
  TraceTime latest_begin = first;
  TraceTime earliest_end = last;
  Duration longest{};
  for (const Interval& window : windows) {
    first = std::min(first, window.begin);
    last = std::max(last, window.end);
    latest_begin = std::max(latest_begin, window.begin);
    earliest_end = std::min(earliest_end, window.end);
    longest = std::max(longest, window.length());
  }
  const bool aligned = latest_begin < earliest_end;
  view.origin = aligned ? TimelineOrigin::kShared : TimelineOrigin::kEachRank;
  view.zero = first;
  view.to = aligned ? last - first : longest;
  const Duration from = std::clamp(options.from.value_or(Duration{}), Duration{}, view.to);
  const Duration to = std::clamp(options.to.value_or(view.to), Duration{}, view.to);
  if (from < to) view.from = from, view.to = to;
  return view;
}

Paint paint_of(const RankTrace& rank, const DeviceOp& op) {
  switch (op.kind) {
    case DeviceOpKind::kCollective:
      return is_peer_operation(rank, op) ? Paint::kPeer : Paint::kCollective;
    case DeviceOpKind::kCopy: return Paint::kCopy;
    case DeviceOpKind::kMemset: return Paint::kMemset;
    case DeviceOpKind::kKernel: break;
  }
  return Paint::kCompute;
}

TimelineLane bubble_lane(const std::vector<BubbleSegment>& segments, Interval view,
                         std::uint32_t columns) {
  PixelLane lane(view, columns);
  for (const BubbleSegment& segment : segments) lane.add(segment.span, paint_of(segment.cause));
  return {"bubbles", kThinHeight, lane.runs()};
}

/// Own work, communication, copies. Overlapping operations of one lane are united first, so that
/// a column is as dark as the time that any of them runs.
std::vector<TimelineLane> kind_lanes(const RankTrace& rank, Interval view,
                                     std::uint32_t columns) {
  std::map<Paint, std::vector<Interval>> spans;
  for (const DeviceOp& op : rank.device_ops) {
    spans[paint_of(rank, op)].push_back({op.start, std::max(op.start, op.end())});
  }
  const auto lane_of = [&](std::string label, double height, Paint first, Paint last) {
    PixelLane lane(view, columns);
    for (auto place = spans.lower_bound(first); place != spans.end() && place->first <= last;
         ++place) {
      for (const Interval& span : unite(place->second)) lane.add(span, place->first);
    }
    return TimelineLane{std::move(label), height, lane.runs()};
  };
  std::vector<TimelineLane> lanes;
  lanes.push_back(lane_of("kernels", kWorkHeight, Paint::kCompute, Paint::kCompute));
  lanes.push_back(lane_of("communication", kThinHeight, Paint::kCollective, Paint::kPeer));
  lanes.push_back(lane_of("copies", kThinHeight, Paint::kCopy, Paint::kMemset));
  return lanes;
}

std::vector<TimelineLane> stream_lanes(const RankTrace& rank, Interval view, std::uint32_t columns,
                                       std::size_t max_streams) {
  std::map<StreamId, Duration> time;
  for (const DeviceOp& op : rank.device_ops) time[op.stream] += op.duration;
  std::vector<std::pair<Duration, StreamId>> order;
  for (const auto& [stream, total] : time) order.emplace_back(-total, stream);
  std::sort(order.begin(), order.end());
  if (order.size() > max_streams) order.resize(max_streams);
  std::map<StreamId, PixelLane> lanes;
  for (const auto& entry : order) lanes.emplace(entry.second, PixelLane(view, columns));
  for (const DeviceOp& op : rank.device_ops) {
    const auto place = lanes.find(op.stream);
    if (place != lanes.end()) place->second.add({op.start, op.end()}, paint_of(rank, op));
  }
  std::vector<TimelineLane> list;
  for (const auto& [stream, lane] : lanes) {
    const std::uint64_t id =
        stream.index() < rank.streams.size() ? rank.streams[stream.index()].system_id : 0;
    list.push_back({fmt::format("stream {}", id), kWorkHeight, lane.runs()});
  }
  return list;
}

TimelineBlock block_of(const Subject& subject, const TimelineOptions& options, Interval view,
                       std::uint32_t columns) {
  const RankTrace& rank = *subject.trace;
  CounterSet ignored;  // inspect_rank reports them; a picture has no place for counters
  TimelineBlock block;
  block.rank = rank.rank;
  block.view = view;
  const auto segments = bubble_segments(rank, subject.use, options.thresholds, ignored);
  const Interval seen{std::max(view.begin, subject.use.window.begin),
                      std::min(view.end, subject.use.window.end)};
  if (seen.begin < seen.end) block.use = window_use(rank, subject.use, segments, seen);
  if (const auto pass = find_rank_pass(rank)) block.iterations = iterations_of(*pass, subject.use);
  block.lanes = options.rows == TimelineRows::kLanes
                    ? kind_lanes(rank, view, columns)
                    : stream_lanes(rank, view, columns, std::min(options.max_streams, kMaxStreams));
  block.lanes.push_back(bubble_lane(segments, view, columns));
  return block;
}

/// Communication and copies have a lane in every rank or in none.
void drop_lanes_empty_everywhere(std::vector<TimelineBlock>& blocks) {
  for (const std::string_view label : {"communication", "copies"}) {
    const auto unused = [&](const TimelineLane& lane) {
      return lane.label == label && lane.runs.empty();
    };
    const bool everywhere = std::all_of(blocks.begin(), blocks.end(), [&](const auto& block) {
      return std::any_of(block.lanes.begin(), block.lanes.end(), unused);
    });
    if (!everywhere) continue;
    for (TimelineBlock& block : blocks) std::erase_if(block.lanes, unused);
  }
}

}  // namespace

TimelinePlan plan_timeline(const JobTrace& job, const TimelineOptions& options,
                           std::uint32_t plot_width_px) {
  const std::vector<Subject> subjects = subjects_of(job, options.max_ranks);
  const View view = choose_view(windows_of(subjects), options);
  TimelinePlan plan;
  plan.from = view.from;
  plan.length = view.to - view.from;
  plan.origin = view.origin;
  if (plan.length <= Duration{}) return plan;
  const std::size_t lanes_each =
      options.rows == TimelineRows::kLanes ? 4 : std::min(options.max_streams, kMaxStreams) + 1;
  const auto lanes = static_cast<std::uint32_t>(subjects.size() * lanes_each);
  plan.columns = std::max(1U, std::min(plot_width_px, kMaxRuns / lanes));
  for (const Subject& subject : subjects) {
    const TraceTime zero =
        view.origin == TimelineOrigin::kShared ? view.zero : subject.use.window.begin;
    plan.blocks.push_back(
        block_of(subject, options, {zero + view.from, zero + view.to}, plan.columns));
  }
  drop_lanes_empty_everywhere(plan.blocks);
  return plan;
}

}  // namespace bubblesim::traces
