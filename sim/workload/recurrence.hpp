// A recorded job that has its GPUs to itself, without events. Nothing there competes for anything:
// each operation starts a lag after the last of what it waits for, so that a pass is one walk over
// the calls of its threads (a recurrence of sums and maxima). Its times are those of a LoneJob, to
// the nanosecond (tests/laws/workload/recurrence_test.cpp); it is several times as fast.
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
  SimTime end{};                 ///< every call has returned, every operation has ended
  std::uint64_t calls = 0;
};

/// Whether pass_times() knows the job: recorded durations hold what a rank's own kernels did to
/// each other and are exact in the GPU model, no more streams copy than the GPU has copy engines,
/// no fabric carries a collective, and each rank comes to one once.
[[nodiscard]] bool has_recurrence(const JobProgram& job, const hardware::GpuSpec& spec);

/// One pass of every rank, each from its offset on; by position of the rank. Nothing if a
/// dependency is never met, or if the result depends on the order within one nanosecond,
/// which only a simulation by events knows: of an operation of zero length and a call that asks for
/// it, or of two threads that go on. Precondition: has_recurrence().
[[nodiscard]] std::optional<std::vector<PassTimes>> pass_times(const JobProgram& job);

}  // namespace bubblesim::workload
