// Marks of traces that are not plain recordings: an importer laid out their starts (so a replay has
// no error to report), a simulation made the job, or the file is a viewer's timeline.
#pragma once

#include <string_view>

#include "traces/trace.hpp"

namespace bubblesim::traces {

inline constexpr CounterSpec kLayoutInferred{
    "trace_layout_inferred", Severity::kNotice,
    "ranks whose starts are not recorded: laid out by durations, dependencies and collectives; "
    "there is no recorded time to compare with"};

[[nodiscard]] inline bool has_inferred_layout(const RankTrace& trace) {
  return trace.counters.count(kLayoutInferred.name) > 0;
}

// How a trace that a simulation wrote (sim/synth) is told from a recording.

/// Provenance::format of such a trace.
inline constexpr std::string_view kMadeFormat = "bubblesim-synth";

// How a timeline that bubblesim wrote for viewers (traces/export/chrome_trace.hpp) is told from a
// recording: it has kernels too, but not what joins them to their launches.

/// A member of the file's "otherData".
inline constexpr std::string_view kTimelineMarkKey = "bubblesim";
inline constexpr std::string_view kTimelineMark = "timeline for viewers";

}  // namespace bubblesim::traces
