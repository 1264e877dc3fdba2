// A picture of a job's timeline as SVG: time to the right, a block of lanes a rank.
//
// Lanes of a rank: own work (kernels), communication, copies and memsets, and bubbles coloured by
// cause; or a lane a stream and the bubbles. Slices are gathered into pixel columns: a column
// has the colour that covers most of it and is the paler the less of it is covered. So the size
// depends on width and lanes only: below 1 MB for any trace.
// Ranks whose windows have no common time are drawn each from its own first operation, and the
// picture says so: their clocks are not aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "traces/inspect/bubbles.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

enum class TimelineRows : std::uint8_t { kLanes, kStreams };

struct TimelineSvgOptions {
  std::uint32_t width_px = 1600;      ///< of the picture; taken into [400, 8000]
  std::optional<Duration> from;       ///< since the first operation drawn; nothing: its start
  std::optional<Duration> to;         ///< likewise; nothing: the last operation's end
  std::size_t max_ranks = 16;         ///< the first ranks of the job; at least one, at most 64
  std::size_t max_streams = 6;        ///< a rank, those with most time; kStreams only; at most 16
  TimelineRows rows = TimelineRows::kLanes;
  std::string title;                  ///< empty: made from the first rank's provenance
  BubbleThresholds thresholds;
};

/// Well-formed UTF-8 XML, also for a job without ranks or operations (it says so). A view whose
/// `to` is not after `from` is taken as the whole window.
[[nodiscard]] std::string render_timeline_svg(const JobTrace& job,
                                              const TimelineSvgOptions& options = {});

}  // namespace bubblesim::traces
