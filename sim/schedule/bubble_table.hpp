// The training job's bubbles, measured while it runs alone, as a pipeline engine knows them after
// profiling its schedule. Policies that declare `bubbles` hear of them.
#pragma once

#include <chrono>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/session/bubble_watch.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::schedule {

/// One rank's bubbles of a pass, by operation.
using BubbleTable = std::vector<policy::MeasuredBubble>;

/// The shortest gap that counts as a bubble; shorter ones are launch gaps.
inline constexpr Duration kShortestBubble = std::chrono::microseconds(100);

/// Marks the collectives of a job that are waits for pipeline peers: sends, receives, and
/// collectives among ranks that sends and receives connect (the gradients' norm over all stages,
/// tied embeddings), in which a stage that ends early waits for the others.
[[nodiscard]] std::vector<bool> pipeline_collectives(const workload::JobProgram& job);

/// Runs the job alone for two passes and measures the second. Returns a table for each rank.
///
/// A bubble is a wait for a pipeline peer if only pipeline_collectives() ran for half of it or
/// more, or if one of them ended last. Its free memory is the device's memory less the rank's,
/// which is the least that the program marks from `after_op` to the operation that ends the bubble
/// (a micro-batch's activations exist from its forward pass to its backward pass); a program
/// without marks gives 0.
[[nodiscard]] Result<std::vector<BubbleTable>> measure_bubbles(const workload::JobProgram& job,
                                                               const hardware::GpuSpec& spec);

}  // namespace bubblesim::schedule
