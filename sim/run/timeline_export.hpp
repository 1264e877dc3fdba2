// A recorded simulation as a Chrome trace: a process a GPU; of each client a track for its device
// work, its host side, its requests and its bubbles, as far as there are any.
#pragma once

#include "sim/observe/timeline.hpp"
#include "traces/export/chrome_trace.hpp"

namespace bubblesim::run {

/// Only what lies within [from, to] of a recording is exported.
struct TimelineWindow {
  SimTime from = kSimStart;
  SimTime to = SimTime::max();
};

/// Borrows the names of `timeline`, which outlives the result.
[[nodiscard]] traces::ChromeTrace timeline_to_chrome(const observe::TimelineRecorder& timeline,
                                                     const TimelineWindow& window = {});

}  // namespace bubblesim::run
