// Time slices of contexts that share the GPU without MPS, by two processes that never let it idle.
#pragma once

#include <vector>

#include "sim/measure/calibrate/probe.hpp"

namespace bubblesim::measure {

/// Each process has an endless row of kernels of about 100 us, far shorter than a slice.
[[nodiscard]] ProbeRun slice_run(const hardware::GpuSpec& spec);

/// The row of one process as the device ran it. A kernel whose slice ended under it stands still
/// until its process has its next turn: from the end of the kernel before it to its own end passes
/// more than the others' time. What passes more is what the process was away.
struct Turns {
  double kernel = 0;           ///< from end to end, ns, while the process has the GPU
  double slice = 0;            ///< ns of such time between two absences; 0: too few
  std::vector<double> away;    ///< ns
};
[[nodiscard]] Turns turns_of(const capture::JobRecord& record);

/// time_slice: how far apart, on a process's own time (without its absences), they begin: the slope
/// over their numbers. Where in the slice a kernel ends does not matter to it.
/// context_switch: of an absence what is left without the other process's slice, halved: the GPU
/// passes to the other process and back.
[[nodiscard]] std::vector<Finding> slice_findings(const Records& records);

}  // namespace bubblesim::measure
