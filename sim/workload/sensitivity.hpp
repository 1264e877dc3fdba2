// The sensitivities of a job's iteration time: the job's passes repeat, as in a run, with one kind
// of work at a time (kernels, copies, link, host) twice as fast.
#pragma once

#include <initializer_list>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/replay.hpp"
#include "sim/workload/what_if.hpp"
#include "traces/inspect/sensitivities.hpp"

namespace bubblesim::workload {

/// Mean over ranks of the mean simulated iteration.
[[nodiscard]] Duration mean_iteration(const ReplayReport& report);
/// The same with all of `targets` twice as fast.
[[nodiscard]] Result<Duration> iteration_with(std::initializer_list<WhatIfTarget> targets,
                                              const JobProgram& job,
                                              const hardware::GpuSpec& spec);

/// The sensitivities that traces/inspect/sensitivities.hpp defines, from six calls of repeat_alone:
/// the job unchanged, with each kind twice as fast, with all. Fault: as repeat_alone.
[[nodiscard]] Result<traces::Sensitivities> find_sensitivities(const JobProgram& job,
                                                               const hardware::GpuSpec& spec);

}  // namespace bubblesim::workload
