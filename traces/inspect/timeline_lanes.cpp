// Chooses the view and fills the lanes.
#include "traces/inspect/timeline_lanes.hpp"

#include <algorithm>
#include <utility>

#include "traces/inspect/window_use.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::size_t kMaxRanks = 64;

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
  Duration length{};
};

View choose_view(const std::vector<Interval>& windows) {
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
  view.length = aligned ? last - first : longest;
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

/// Those of no length are left out.
void add_span(ShownSpans& spans, Interval view, Interval span, std::uint32_t name, Paint paint) {
  if (span.length() <= Duration{}) return;
  spans.push_back({span.begin - view.begin, span.length(), name, paint, 1, span.length()});
}

TimelineLane bubble_lane(const std::vector<BubbleSegment>& segments, Interval view) {
  TimelineLane lane{"bubbles", {}};
  for (const BubbleSegment& segment : segments) {
    add_span(lane.spans, view, segment.span, kNone, paint_of(segment.cause));
  }
  return lane;
}

/// Own work, communication, copies.
std::vector<TimelineLane> kind_lanes(const RankTrace& rank, Interval view) {
  std::vector<TimelineLane> lanes;
  const auto add_lane = [&](std::string label, Paint first, Paint last) {
    TimelineLane lane{std::move(label), {}};
    for (const DeviceOp& op : rank.device_ops) {
      const Paint paint = paint_of(rank, op);
      if (paint < first || paint > last) continue;
      add_span(lane.spans, view, {op.start, op.end()}, op.name.value, paint);
    }
    lanes.push_back(std::move(lane));
  };
  add_lane("kernels", Paint::kCompute, Paint::kCompute);
  add_lane("communication", Paint::kCollective, Paint::kPeer);
  add_lane("copies", Paint::kCopy, Paint::kMemset);
  return lanes;
}

TimelineBlock block_of(const Subject& subject, Interval view) {
  const RankTrace& rank = *subject.trace;
  CounterSet ignored;  // inspect_rank reports them; a picture has no place for counters
  TimelineBlock block;
  block.rank = rank.rank;
  block.view = view;
  const auto segments = bubble_segments(rank, subject.use, {}, ignored);
  block.use = window_use(rank, subject.use, segments, subject.use.window);
  if (const auto pass = find_rank_pass(rank)) block.iterations = iterations_of(*pass, subject.use);
  block.lanes = kind_lanes(rank, view);
  block.lanes.push_back(bubble_lane(segments, view));
  return block;
}

/// Communication and copies have a lane in every rank or in none.
void drop_lanes_empty_everywhere(std::vector<TimelineBlock>& blocks) {
  for (const std::string_view label : {"communication", "copies"}) {
    const auto unused = [&](const TimelineLane& lane) {
      return lane.label == label && lane.spans.empty();
    };
    const bool everywhere = std::all_of(blocks.begin(), blocks.end(), [&](const auto& block) {
      return std::any_of(block.lanes.begin(), block.lanes.end(), unused);
    });
    if (!everywhere) continue;
    for (TimelineBlock& block : blocks) std::erase_if(block.lanes, unused);
  }
}

}  // namespace

TimelinePlan plan_timeline(const JobTrace& job, std::size_t max_ranks) {
  const std::vector<Subject> subjects = subjects_of(job, max_ranks);
  const View view = choose_view(windows_of(subjects));
  TimelinePlan plan;
  plan.length = view.length;
  plan.origin = view.origin;
  if (plan.length <= Duration{}) return plan;
  for (const Subject& subject : subjects) {
    const TraceTime zero =
        view.origin == TimelineOrigin::kShared ? view.zero : subject.use.window.begin;
    plan.blocks.push_back(block_of(subject, {zero, zero + view.length}));
  }
  drop_lanes_empty_everywhere(plan.blocks);
  return plan;
}

}  // namespace bubblesim::traces
