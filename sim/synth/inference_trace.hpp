// A synthesised service, as the trace that a profiler would have written of it.
#pragma once

#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/synth/inference_request.hpp"
#include "traces/trace.hpp"

namespace bubblesim::synth {

/// One rank that serves `passes` batches alone, one after another; each is a marked iteration.
/// Memory: what the instance holds. Fault: as inference_program; passes of 0.
[[nodiscard]] Result<traces::JobTrace> inference_trace(const InferenceRequest& request,
                                                       std::uint32_t passes = 1);

}  // namespace bubblesim::synth
