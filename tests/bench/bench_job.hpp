// Jobs and fillers of any size for benchmarks: kernels launched 1 us apart on one stream, and
// collectives on a second one that join the ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::bench {

[[nodiscard]] hardware::GpuSpec bench_device();

/// How long the rank's operation of this number lasts, if it is a kernel.
using DurationOf = Duration (*)(std::uint32_t rank, std::size_t number);

struct JobShape {
  std::uint32_t ranks = 1;
  std::uint32_t kernels = 0;  ///< an iteration's, on a rank; a multiple of the next
  std::uint32_t kernels_a_collective = 1;
  DurationOf duration = nullptr;
};

/// A pass is one iteration. A collective of 20 us over all ranks follows every
/// `kernels_a_collective` kernels and waits for them; at the end the host waits for the device.
[[nodiscard]] workload::JobProgram bench_job(const JobShape& shape,
                                             const hardware::GpuSpec& device);

/// A pass of so many kernels, as long as those of rank 0; the host waits for the last.
[[nodiscard]] program::Program bench_filler(std::uint32_t kernels, DurationOf duration,
                                             const hardware::GpuSpec& device);

}  // namespace bubblesim::bench
