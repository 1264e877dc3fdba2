// A recorded simulation as a Chrome trace: a process for each GPU, with tracks for each client:
// device work, host calls, requests and bubbles, as far as it has any.
#pragma once

#include "sim/observe/timeline.hpp"
#include "traces/export/chrome_trace.hpp"

namespace bubblesim::run {

/// What of it lies in `window`. Refers to the names of `timeline`, which outlives the result.
[[nodiscard]] traces::ChromeTrace timeline_to_chrome(const observe::TimelineRecorder& timeline,
                                                     const observe::TimelineWindow& window = {});

}  // namespace bubblesim::run
