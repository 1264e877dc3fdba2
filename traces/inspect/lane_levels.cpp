#include "traces/inspect/lane_levels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

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
    // Of a next span that has gaps itself, its share of what it adds.
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

}  // namespace bubblesim::traces
