// Ranks whose recording has durations and dependencies, but no starts: an importer laid their
// operations out. Such a layout is a result, not a measurement: nothing may be compared with it.
#pragma once

#include "traces/trace.hpp"

namespace bubblesim::traces {

inline constexpr CounterSpec kLayoutInferred{
    "trace_layout_inferred", Severity::kNotice,
    "ranks whose starts are not recorded: laid out by durations, dependencies and collectives; "
    "there is no recorded time to compare with"};

[[nodiscard]] inline bool has_inferred_layout(const RankTrace& trace) {
  return trace.counters.count(kLayoutInferred.name) > 0;
}

}  // namespace bubblesim::traces
