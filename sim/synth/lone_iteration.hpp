// How long an iteration of a job takes when it has its GPUs to itself.
#pragma once

#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::synth {

struct LoneIteration {
  Duration time{};           ///< mean over a pass of the first rank, steady
  std::uint64_t kernels = 0; ///< of all simulated ranks, an iteration
  std::uint64_t events = 0;  ///< of the whole simulation
};

/// Runs two passes and times the second: the first fills what one iteration leaves for the next.
[[nodiscard]] Result<LoneIteration> time_alone(const workload::JobProgram& job,
                                               const hardware::GpuSpec& gpu);

/// Ranks whose exchange between regions, which no kernel waits for, takes longer than a pass. Since
/// each pass begins another, ever more of them are under way. Runs two passes.
[[nodiscard]] std::uint64_t late_exchanges(const workload::JobProgram& job,
                                           const hardware::GpuSpec& gpu);

}  // namespace bubblesim::synth
