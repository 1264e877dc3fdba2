// What a job's iteration time depends on: repeated passes, as of a run, with one thing at a
// time twice as fast.
#pragma once

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/replay.hpp"
#include "traces/inspect/sensitivities.hpp"

namespace bubblesim::workload {

/// Mean over ranks of the mean simulated iteration.
[[nodiscard]] Duration mean_iteration(const ReplayReport& report);

/// traces/inspect/sensitivities.hpp defines them. Five repetitions. Fault: as repeat_alone.
[[nodiscard]] Result<traces::Sensitivities> find_sensitivities(const JobProgram& job,
                                                               const hardware::GpuSpec& spec);

}  // namespace bubblesim::workload
