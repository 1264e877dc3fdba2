// Iterations of a rank as an inspection shows them.
#pragma once

#include "traces/inspect/bubbles.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// The recorded iterations of a pass (traces/iterations/job_pass.hpp), with what the device did
/// meanwhile.
[[nodiscard]] Iterations iterations_of(const RankPass& pass, const DeviceUse& use);

}  // namespace bubblesim::traces
