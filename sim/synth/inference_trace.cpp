#include "sim/synth/inference_trace.hpp"

#include <utility>

#include "sim/synth/inference_program.hpp"
#include "sim/synth/record_trace.hpp"

namespace bubblesim::synth {

Result<traces::JobTrace> inference_trace(const InferenceRequest& request, std::uint32_t passes) {
  BUBBLESIM_ASSIGN_OR_RETURN(InferenceProgram made, inference_program(request));
  made.program.memory.push_back({0, static_cast<std::uint64_t>(made.memory.total())});
  workload::JobProgram job;
  job.ranks.push_back(std::move(made.program));
  RecordSetup setup;
  setup.iterations = passes;
  return record_trace(job, request.gpu, setup);
}

}  // namespace bubblesim::synth
