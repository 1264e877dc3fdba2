// Is a table a schedule at all? Every fault is reported, at most kMaxFaults of them.
#pragma once

#include <cstddef>

#include "sim/base/result.hpp"
#include "sim/pipeline/schedule.hpp"
#include "sim/pipeline/stage_graph.hpp"

namespace bubblesim::pipeline {

inline constexpr std::size_t kMaxFaults = 20;

/// Empty if `schedule` is sound on `graph`: stages and ranks are there; every stage does each of
/// its micro-batches once forward and once backward (B, or I and W) and no others, on its own
/// rank; and all of it runs. A deadlock is reported with each rank that waits, at which action,
/// and for what of whom. `place` of an error is "rank 2, action 5" (both from 0).
[[nodiscard]] Errors check(const Schedule& schedule, const StageGraph& graph);

/// The graph that a table without one belongs to: two directions if stage n/2+i sits on rank
/// n/2-1-i and the halves share no micro-batch, else a chain.
[[nodiscard]] StageGraph infer_graph(const Schedule& schedule);

}  // namespace bubblesim::pipeline
