// A recording with more idle time before its first mark.
#pragma once

#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::testing {

/// Adds idle time of length `more` to the beginning of a rank's recording:
///   - the longest span before its first iteration marker in which neither the device nor a
///     recorded call is at work, if there is one, becomes so much longer: what is before it moves;
///   - a call of no consequence comes so much before everything else, on the thread of the first
///     call. A rank without calls has none.
void add_idle_at_begin(traces::RankTrace& rank, Duration more);

}  // namespace bubblesim::testing
