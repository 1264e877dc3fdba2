// A recording with more idle time before its first mark.
#pragma once

#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::testing {

/// Adds idle time of length `more` to the beginning of a rank's recording:
///   - the longest span before its first iteration marker in which neither the device nor a
///     recorded call is at work, if any, grows by `more`: the records before it become earlier;
///   - a cudaGetDevice call is inserted `more` before the first record, on the thread of the first
///     call; not for a rank without calls.
void add_idle_at_begin(traces::RankTrace& rank, Duration more);

}  // namespace bubblesim::testing
