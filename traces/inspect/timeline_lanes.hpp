// What the timeline picture shows, before it is drawn: a view of time and lanes of runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/inspect/inspection.hpp"
#include "traces/inspect/lane_levels.hpp"
#include "traces/inspect/pixel_lane.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

struct TimelineLane {
  std::string label;
  double height_px = 0;
  std::vector<PaintRun> runs;  ///< of plan_timeline
  ShownSpans spans;  ///< of plan_spans; names are the rank's, of bubbles none
};

/// One rank's block.
struct TimelineBlock {
  std::uint32_t rank = 0;
  Interval view;          ///< in the rank's own recorded time
  WindowUse use;          ///< over the rank's window, which lies within the view
  Iterations iterations;
  std::vector<TimelineLane> lanes;
};

enum class TimelineOrigin : std::uint8_t { kShared, kEachRank };

struct TimelinePlan {
  Duration length{};      ///< of the view; zero: there is nothing to draw
  TimelineOrigin origin = TimelineOrigin::kShared;
  std::uint32_t columns = 0;
  std::vector<TimelineBlock> blocks;
};

/// The job's first `max_ranks` ranks, at most 64, in `plot_width_px` columns, or fewer where that
/// would make the picture too large.
[[nodiscard]] TimelinePlan plan_timeline(const JobTrace& job, std::size_t max_ranks,
                                         std::uint32_t plot_width_px);

/// The same with every operation and bubble as a span, for views that can be zoomed. No columns.
[[nodiscard]] TimelinePlan plan_spans(const JobTrace& job, std::size_t max_ranks);

}  // namespace bubblesim::traces
