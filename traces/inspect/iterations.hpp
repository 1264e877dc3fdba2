// Iterations of a rank, from the host's markers.
#pragma once

#include <optional>

#include "traces/inspect/bubbles.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// Iterations run from one marker's start to the next marker's start: host time, as a training
/// loop sees it. The last one runs to its marker's end, or, where that has no length, to the end
/// of the last device operation. Markers on several threads: the thread with most of them counts,
/// then the lowest; `inspect_iteration_markers_left_out` counts the others. Markers that start
/// together are one. None marked: the window is the only iteration, and `marked` is false.
[[nodiscard]] Iterations find_iterations(const RankTrace& rank, const DeviceUse& use,
                                         CounterSet& counters);

/// From the second iteration's start to the earlier of the last iteration's end and the window's
/// end; nothing with fewer than two iterations or where that is empty.
[[nodiscard]] std::optional<Interval> steady_window(const Iterations& iterations,
                                                    Interval window);

}  // namespace bubblesim::traces
