// What a timeline shows, before it is drawn: a view of time, and lanes of spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/inspect/inspection.hpp"
#include "traces/inspect/lane_levels.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

struct TimelineLane {
  std::string label;
  ShownSpans spans;  ///< names are the rank's, of bubbles none
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
  std::vector<TimelineBlock> blocks;
};

/// The job's first `max_ranks` ranks, at most 64, with every operation and bubble as a span.
[[nodiscard]] TimelinePlan plan_timeline(const JobTrace& job, std::size_t max_ranks);

}  // namespace bubblesim::traces
