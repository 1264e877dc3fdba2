// The training job's bubbles, measured while it runs alone: what a pipeline engine knows of its
// schedule after profiling it, and what policies that declare `bubbles` are told of.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::schedule {

/// Time without a computing kernel of training that follows one: collectives, copies and memsets
/// may run.
struct Bubble {
  std::uint32_t after_op = 0;  ///< into the rank's program; the bubble begins when it ends
  Duration length{};
  /// A wait for a pipeline peer (pipeline_collectives()): only such were under way for half of it
  /// or more, or one ended last.
  bool pipeline = false;
  /// Device memory that the rank does not hold between the steps around the bubble: what is held
  /// is the least that its program marks from `after_op` to the operation that ends the bubble (a
  /// micro-batch's activations are gone after its backward pass, and not there before its forward
  /// pass). 0: the program has no marks.
  Bytes free_memory{};
};

/// One rank's bubbles of a pass, by operation.
using BubbleTable = std::vector<Bubble>;

/// Shorter gaps are not worth an instruction: launch gaps, not bubbles.
inline constexpr Duration kShortestBubble = std::chrono::microseconds(100);

/// Which collectives of a job are waits for pipeline peers: sends and receives, and what joins
/// ranks that sends and receives connect (the gradients' norm over all stages, tied embeddings):
/// a stage that is done early waits there for the others.
[[nodiscard]] std::vector<bool> pipeline_collectives(const workload::JobProgram& job);

/// Runs the job alone for two passes and measures the second. One table a rank.
[[nodiscard]] Result<std::vector<BubbleTable>> measure_bubbles(const workload::JobProgram& job,
                                                               const hardware::GpuSpec& spec);

}  // namespace bubblesim::schedule
