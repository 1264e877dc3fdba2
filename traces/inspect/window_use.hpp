// Device use over one window; a part of inspect_rank. Terms in bubbles.hpp and inspection.hpp.
#pragma once

#include <vector>

#include "traces/inspect/bubbles.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// `segments` are the rank's over its whole window; `window` lies within it.
[[nodiscard]] WindowUse window_use(const RankTrace& rank, const DeviceUse& use,
                                   const std::vector<BubbleSegment>& segments, Interval window);

// Iterations of a rank as an inspection shows them.

/// The recorded iterations of a pass (traces/iterations/job_pass.hpp), with what the device did
/// meanwhile.
[[nodiscard]] Iterations iterations_of(const RankPass& pass, const DeviceUse& use);

}  // namespace bubblesim::traces
