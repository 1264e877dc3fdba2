// Chooses the view and fills the lanes.
#include "traces/inspect/timeline_lanes.hpp"

#include <algorithm>
#include <cmath>
#include <utility>


namespace bubblesim::traces {

// Coverage of pixel columns.

namespace {

constexpr std::array<std::string_view, 5> kWorkNames{"kernel", "collective", "send_recv", "copy",
                                                     "memset"};
constexpr std::array<std::string_view, 6> kSimulatedNames{"filler", "idle",    "paused",
                                                          "hold",   "request", "phase"};
static_assert(kWorkNames.size() + kBubbleCauseCount + kSimulatedNames.size() == kPaintCount);

}  // namespace

Paint paint_of(BubbleCause cause) {
  return static_cast<Paint>(static_cast<std::uint8_t>(Paint::kFirstCause) +
                            static_cast<std::uint8_t>(cause));
}

std::string_view paint_name(Paint paint) {
  const auto place = static_cast<std::size_t>(paint);
  if (place < kWorkNames.size()) return kWorkNames[place];
  const std::size_t cause = place - kWorkNames.size();
  if (cause < kBubbleCauseCount) return bubble_cause_name(static_cast<BubbleCause>(cause));
  return kSimulatedNames[cause - kBubbleCauseCount];
}

std::string_view paint_label(Paint paint) {
  if (paint == Paint::kPeer) return "send or receive";
  if (paint == Paint::kHold) return "launch held";
  if (paint >= Paint::kFirstCause && paint < Paint::kFiller) {
    const auto cause = static_cast<std::size_t>(paint) - kWorkNames.size();
    return bubble_cause_label(static_cast<BubbleCause>(cause));
  }
  return paint_name(paint);
}

std::optional<Paint> paint_named(std::string_view name) {
  for (std::size_t i = 0; i < kPaintCount; ++i) {
    if (paint_name(static_cast<Paint>(i)) == name) return static_cast<Paint>(i);
  }
  return std::nullopt;
}

PixelLane::PixelLane(Interval view, std::uint32_t columns)
    : view_(view),
      columns_per_ns_(static_cast<double>(columns) / static_cast<double>(to_ns(view.length()))),
      columns_(columns, Coverage{}) {}

void PixelLane::add(Interval span, Paint paint, double share) {
  const TraceTime from = std::max(span.begin, view_.begin);
  const TraceTime to = std::min(span.end, view_.end);
  if (from >= to) return;
  const double left = static_cast<double>(to_ns(from - view_.begin)) * columns_per_ns_;
  const double right = std::min(static_cast<double>(to_ns(to - view_.begin)) * columns_per_ns_,
                                static_cast<double>(columns_.size()));
  const auto kind = static_cast<std::size_t>(paint);
  for (double edge = std::floor(left); edge < right; edge += 1) {
    const double covered = std::min(right, edge + 1) - std::max(left, edge);
    columns_[static_cast<std::size_t>(edge)][kind] += static_cast<float>(covered * share);
  }
}

std::vector<PaintRun> PixelLane::runs(float visible) const {
  std::vector<PaintRun> runs;
  for (std::uint32_t i = 0; i < columns_.size(); ++i) {
    const Coverage& column = columns_[i];
    float total = 0;
    for (const float share : column) total += share;
    if (total < visible) continue;
    const auto most = std::max_element(column.begin(), column.end()) - column.begin();
    const float filled = std::min(total, 1.0F) * kPaintLevels;
    const auto level = static_cast<std::uint8_t>(
        std::clamp(std::lround(filled), 1L, static_cast<long>(kPaintLevels)));
    const PaintRun run{i, 1, static_cast<Paint>(most), level};
    if (!runs.empty() && runs.back().column + runs.back().columns == i &&
        runs.back().paint == run.paint && runs.back().level == run.level) {
      ++runs.back().columns;
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

namespace {

constexpr Duration kFinestResolution{128};

bool joins(const ShownSpan& last, const ShownSpan& next, Duration resolution) {
  const Duration gap = next.start - (last.start + last.length);
  return gap < resolution && next.length < resolution &&
         (last.count > 1 || last.length < resolution);
}

void join(ShownSpan& last, const ShownSpan& next) {
  const Duration end = last.start + last.length;
  const Duration next_end = next.start + next.length;
  if (next_end > end) {
    // If the next span has gaps itself, it adds its share only.
    const Duration added = next_end - std::max(end, next.start);
    last.covered += std::min(added, next.covered);
    last.length = next_end - last.start;
  }
  last.count += next.count;
}

Interval interval_of(const ShownSpan& span) {
  return {TraceTime{span.start}, TraceTime{span.start + span.length}};
}

}  // namespace

ShownSpans join_short(const ShownSpans& spans, Duration resolution) {
  ShownSpans joined;
  Duration longest{};  // of what the last one stands for
  for (const ShownSpan& span : spans) {
    if (joined.empty() || !joins(joined.back(), span, resolution)) {
      joined.push_back(span);
      longest = span.length;
      continue;
    }
    join(joined.back(), span);
    if (span.length <= longest) continue;
    longest = span.length;
    joined.back().name = span.name;
    joined.back().paint = span.paint;
  }
  return joined;
}

Duration resolution_for(std::span<const ShownSpans> lanes, std::size_t most, Duration length) {
  Duration resolution{};
  while (true) {
    std::size_t count = 0;
    for (const ShownSpans& lane : lanes) {
      count += resolution == Duration{} ? lane.size() : join_short(lane, resolution).size();
    }
    if (count <= most || resolution >= length) return resolution;
    resolution = std::min(length, std::max(kFinestResolution, 2 * resolution));
  }
}

std::vector<PaintRun> pixel_runs(const ShownSpans& spans, Duration length, std::uint32_t columns,
                                 float visible) {
  PixelLane lane({TraceTime{}, TraceTime{length}}, columns);
  std::array<std::vector<Interval>, kPaintCount> by_paint;
  for (const ShownSpan& span : spans) {
    if (span.count > 1 && span.covered < span.length) {
      lane.add(interval_of(span), span.paint, to_seconds(span.covered) / to_seconds(span.length));
    } else {
      by_paint[static_cast<std::size_t>(span.paint)].push_back(interval_of(span));
    }
  }
  for (std::size_t paint = 0; paint < kPaintCount; ++paint) {
    for (const Interval& span : unite(std::move(by_paint[paint]))) {
      lane.add(span, static_cast<Paint>(paint));
    }
  }
  return lane.runs(visible);
}

std::vector<LaneLevel> lane_levels(const ShownSpans& spans, Duration length) {
  std::vector<LaneLevel> levels;
  for (std::uint64_t columns = kCoarsestColumns; columns < spans.size(); columns *= 4) {
    const auto count = static_cast<std::uint32_t>(columns);
    levels.push_back({count, pixel_runs(spans, length, count)});
  }
  return levels;
}

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
