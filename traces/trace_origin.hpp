// Recognises traces that are not plain recordings: an importer laid out their starts (so that a
// replay has no error to report), a simulation made the job, or the file is a timeline for viewers.
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

// The mark of a trace that a simulation wrote (sim/synth).

/// Provenance::format of such a trace.
inline constexpr std::string_view kMadeFormat = "bubblesim-synth";

// The mark of a timeline that bubblesim wrote for viewers (traces/export/chrome_trace.hpp). Such a
// file has kernels, like a recording, but no correlations of kernels with their launches.

/// A member of the file's "otherData".
inline constexpr std::string_view kTimelineMarkKey = "bubblesim";
inline constexpr std::string_view kTimelineMark = "timeline for viewers";

}  // namespace bubblesim::traces
