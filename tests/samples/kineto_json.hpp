// Writes a rank's trace as PyTorch's profiler (Kineto) writes one, for samples and round trips.
#pragma once

#include <string>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Kineto's Chrome-trace JSON. Times are microseconds with three decimals, which keeps every
/// nanosecond. Edges are written as the record and wait calls that made them, with the "cuda_sync"
/// rows that join the two. Host costs outside calls and edges without calls are left out: Kineto
/// has no field for them. O(records).
[[nodiscard]] std::string write_kineto_json(const RankTrace& trace);

}  // namespace bubblesim::traces
