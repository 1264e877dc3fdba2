// Simulates a job and returns the trace that a profiler would have recorded of it.
//
// The job runs alone, from its start. The trace has every host call, device operation, edge,
// collective, iteration and memory mark of the first iterations, in simulated time from zero. It
// can be used like any recording: written as .btr, inspected, replayed, filled.
//
// Values that a program lacks stay absent: copies have no bytes and no direction (counted).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/program_run.hpp"
#include "traces/trace.hpp"

namespace bubblesim::synth {

inline constexpr CounterSpec kShapesReconstructed{
    "record_shapes_reconstructed", Severity::kNotice,
    "kernels whose program knows no launch shape; written with the blocks, warps, registers and "
    "shared memory that their profile takes of an SM"};
inline constexpr CounterSpec kCopiesWithoutSize{
    "record_copies_without_size", Severity::kInfo,
    "copies and memsets written without bytes and direction: a program holds only their duration"};

struct RecordSetup {
  std::uint32_t iterations = 1;  ///< of each rank; work launched later is left out
  std::uint32_t world_size = 0;  ///< of the real job; 0: by the ranks' numbers
  std::vector<workload::Perturbation> perturbations{};  ///< by the rank's position
  traces::Provenance provenance{};  ///< `format` is always kMadeFormat
};

/// A trace for each rank, in the job's order. A collective has the same sequence number on all
/// ranks; numbers are unique within a process group, but not in order of start. Fault: no rank, no
/// iteration, or a dependency that is never met.
[[nodiscard]] Result<traces::JobTrace> record_trace(const workload::JobProgram& job,
                                                    const hardware::GpuSpec& spec,
                                                    const RecordSetup& setup = {});

}  // namespace bubblesim::synth
