#include "traces/inspect/lane_levels.hpp"

#include <algorithm>
#include <array>

namespace bubblesim::traces {
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
