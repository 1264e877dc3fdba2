// A recorded job that has its GPUs to itself, without events. No operations compete: each starts a
// lag after the last of its dependencies, so that a pass is one walk over the calls of its threads
// (a recurrence of sums and maxima). Its times are those of a LoneJob, to the nanosecond
// (tests/laws/workload/recurrence_test.cpp); it is several times as fast.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::workload {

/// One pass of a rank.
struct PassTimes {
  std::vector<SimTime> marks;    ///< when iterations begin, and when the last one ends
  std::vector<SimTime> op_ends;  ///< by operation; SimTime::max(): never launched
  SimTime last_op_end{};
  SimTime end{};                 ///< when every call has returned and every operation has ended
  std::uint64_t calls = 0;
};

/// Whether pass_times() can be used for the job: recorded durations include the contention of a
/// rank's own kernels and are exact in the GPU model, no more streams copy than the GPU has copy
/// engines, no fabric carries a collective, and each rank reaches each collective once.
[[nodiscard]] bool has_recurrence(const JobProgram& job, const hardware::GpuSpec& spec);

/// One pass of every rank, each from its offset on; by position of the rank. Nothing if a
/// dependency is never met, or if the result depends on an order within one nanosecond that only an
/// event simulation knows: of an operation of zero length and a call that queries it, or of two
/// threads that continue. Precondition: has_recurrence().
[[nodiscard]] std::optional<std::vector<PassTimes>> pass_times(const JobProgram& job);

}  // namespace bubblesim::workload
