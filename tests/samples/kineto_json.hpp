// Writes a rank's trace as PyTorch's profiler (Kineto) writes one, for samples and round trips.
#pragma once

#include <string>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Kineto's Chrome-trace JSON. Times are microseconds with three decimals: whole nanoseconds, none
/// lost. Edges are written as the record and wait calls that made them, with the "cuda_sync" rows
/// that join the two. What Kineto has no field for (host costs outside calls, edges without
/// calls) is not written. O(records).
[[nodiscard]] std::string write_kineto_json(const RankTrace& trace);

}  // namespace bubblesim::traces
