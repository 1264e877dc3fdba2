// The iterations that a rank has recorded, before anything is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/iterations/job_pass.hpp"

namespace bubblesim::traces {

/// Sets `marked`, `thread` and `recorded` (host spans and numbers). Markers of the thread that has
/// most count, of equals the lowest; markers that start together are one; of a marker without
/// length that comes last the iteration ends with the rank's work. Others are counted.
void find_recorded(const RankTrace& rank, RankPass& pass);

/// Whether the call gives the device work.
[[nodiscard]] bool is_launch(HostCallKind kind);
/// Whether the call waits for the device.
[[nodiscard]] bool is_synchronisation(HostCallKind kind);

}  // namespace bubblesim::traces
