// A recorded job as a Chrome trace: a process a rank, a track a host thread and a stream, arrows
// from launches to device work, memory over time.
#pragma once

#include "traces/export/chrome_trace.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Times are counted from the job's earliest record, which "otherData" names as `origin_ns`.
/// Borrows the job's names: `job` outlives the result.
[[nodiscard]] ChromeTrace job_to_chrome(const JobTrace& job);

}  // namespace bubblesim::traces
