// One batch of inference requests as a program, for a filler or as a trace.
//
// One host thread, one stream. The request is copied to the device, kernels are launched at the
// software's forward costs (forward_gap, launch_call), the result is copied back and the host waits
// for it. Generation: the prompts' pass, then decode steps; after each the tokens go to the host,
// which waits for them, since it decides whether to go on. Each kernel's time is that of its shape
// at that step: the cache grows by a token a step. All sequences of a batch are alike.
//
// Speculation: rounds of drafting and checking (model::speculation_work). A round yields
// e = model::expected_accepted tokens on average; after r rounds floor(r * e) tokens are there
// (fractions are carried, no chance is drawn), besides the prompt's one. All sequences of a batch
// advance alike, which flatters large batches, whose slowest sequence ends later. The draft model
// reads the prompt too; a last accepted token that it has not cached yet is neglected.
#pragma once

#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/program/program.hpp"
#include "sim/synth/inference_request.hpp"
#include "traces/trace.hpp"

namespace bubblesim::synth {

struct InferenceProgram {
  program::Program program;   ///< one iteration a pass: the batch
  InstanceMemory memory;
  std::uint64_t steps = 1;     ///< times that the host waited: passes of the (large) model
  std::uint64_t kernels = 0;   ///< a pass of the program
  double flops = 0;
};

/// Faults: a batch of 0, no prompt or output tokens, sequences that the model cannot hold, a
/// generating model that is no decoder, memory that the GPU does not have.
[[nodiscard]] Result<InferenceProgram> inference_program(const InferenceRequest& request);

/// One rank that serves `passes` batches alone, one after another; each is a marked iteration.
/// Memory: what the instance holds. Fault: as inference_program; passes of 0.
[[nodiscard]] Result<traces::JobTrace> inference_trace(const InferenceRequest& request,
                                                       std::uint32_t passes = 1);

}  // namespace bubblesim::synth
