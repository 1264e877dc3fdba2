// How far ahead of the device's clock the host's is in a recording.
#pragma once

#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Below zero: behind it. By all launches and waits of the recording; 0 where these allow it.
[[nodiscard]] Duration host_ahead(const RankTrace& trace);

}  // namespace bubblesim::traces
