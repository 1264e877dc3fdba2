// The training job's bubbles, measured while it runs alone: what a pipeline engine knows of its
// schedule after profiling it, and what policies that declare `bubbles` are told of.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/program.hpp"

namespace bubblesim::schedule {

/// Time without training work other than collectives that follows an operation.
struct Bubble {
  std::uint32_t after_op = 0;  ///< into the rank's program; the bubble begins when it ends
  Duration length{};
  bool pipeline = false;       ///< a send or receive ran in it
};

/// One rank's bubbles of a pass, by operation.
using BubbleTable = std::vector<Bubble>;

/// Shorter gaps are not worth an instruction: launch gaps, not bubbles.
inline constexpr Duration kShortestBubble = std::chrono::microseconds(100);

/// Runs the job alone for two passes and measures the second. One table a rank.
[[nodiscard]] Result<std::vector<BubbleTable>> measure_bubbles(const workload::JobProgram& job,
                                                               const hardware::GpuSpec& spec);

}  // namespace bubblesim::schedule
