// A recorded job that has its GPUs to itself, without events. No operations compete: each starts a
// lag after the last of its dependencies, so that a pass is one walk over the calls of its threads
// (a recurrence of sums and maxima); passes repeat as in a run. Its times are those of a LoneJob,
// to the nanosecond (tests/laws/workload/recurrence_test.cpp); it is several times as fast.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::workload {

/// The passes of a rank.
struct PassTimes {
  std::vector<SimTime> marks;    ///< when iterations begin, and when a pass's last one ends
  std::vector<SimTime> ends;     ///< of those, when a pass's last iteration ends
  std::vector<SimTime> op_ends;  ///< by pass, then by operation; SimTime::max(): never launched
  SimTime last_op_end{};
  SimTime end{};                 ///< when every call has returned and every operation has ended
  std::uint64_t calls = 0;
};

/// Whether pass_times() can be used for the job: recorded durations include the contention of a
/// rank's own kernels and are exact in the GPU model, no more streams copy than the GPU has copy
/// engines, no fabric carries a collective, and each rank reaches each collective once.
[[nodiscard]] bool has_recurrence(const JobProgram& job, const hardware::GpuSpec& spec);

/// So many passes of every rank, each from its offset on; by position of the rank. Nothing if a
/// dependency is never met, or if the result depends on what only an event simulation knows: the
/// order within one nanosecond of an operation of zero length and a call that queries it, or of two
/// threads that continue; of several passes also buffered sends, and an operation that starts only
/// after what it waits for has ended in a later pass, too. Precondition: has_recurrence().
[[nodiscard]] std::optional<std::vector<PassTimes>> pass_times(const JobProgram& job,
                                                               std::uint32_t passes = 1);

}  // namespace bubblesim::workload
