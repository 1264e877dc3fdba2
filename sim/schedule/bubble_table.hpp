// The training job's bubbles, measured while it runs alone: what a pipeline engine knows of its
// schedule after profiling it, and what policies that declare `bubbles` are told of.
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

/// Shorter gaps are not worth an instruction: launch gaps, not bubbles.
inline constexpr Duration kShortestBubble = std::chrono::microseconds(100);

/// Which collectives of a job are waits for pipeline peers: sends and receives, and what joins
/// ranks that sends and receives connect (the gradients' norm over all stages, tied embeddings):
/// a stage that is done early waits there for the others.
[[nodiscard]] std::vector<bool> pipeline_collectives(const workload::JobProgram& job);

/// Runs the job alone for two passes and measures the second. One table a rank.
///
/// A bubble is a wait for a pipeline peer (pipeline_collectives()) if only such were under way for
/// half of it or more, or one ended last. Its free memory is what the rank does not hold between
/// the steps around it: what is held is the least that the program marks from `after_op` to the
/// operation that ends the bubble (a micro-batch's activations are gone after its backward pass,
/// and not there before its forward pass); a program without marks gives 0.
[[nodiscard]] Result<std::vector<BubbleTable>> measure_bubbles(const workload::JobProgram& job,
                                                               const hardware::GpuSpec& spec);

}  // namespace bubblesim::schedule
