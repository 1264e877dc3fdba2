// The job of the golden runs, alone, in ms (one iteration is 7 ms):
//
//            0     1     2     3     4     5     6     7
//   rank 0   |  A  |  B  |    AR     |  C  |   idle    |
//   rank 1   |  A  |     B     | AR  |  C  |   idle    |
//
// A, B and C fill all 100 SMs, one block an SM. The all-reduce AR takes 20 SMs from its start on
// each rank and ends on both ranks 1 ms after the last rank has started it. The host launches all
// four at once, waits for C, thinks for 2 ms and begins again.
#pragma once

#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::golden {

/// 100 SMs without launch latency, gaps or contention. A synchronising call returns 100 us after
/// the end of the work that it waited for.
[[nodiscard]] hardware::GpuSpec small_gpu();

[[nodiscard]] workload::JobProgram small_job(const hardware::GpuSpec& gpu);

}  // namespace bubblesim::golden
