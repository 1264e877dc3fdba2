// A rank's recorded iterations, before any is left out.
#pragma once

#include <vector>

#include "traces/iterations/job_pass.hpp"

namespace bubblesim::traces {

/// By stream: whether a launch of one of its operations is recorded.
[[nodiscard]] std::vector<bool> streams_with_launch(const RankTrace& rank);

/// Sets `marked`, `thread` and `recorded` (host spans and numbers). Markers of the thread with most
/// of them count, of equals the lowest; markers that start together are one; the iteration of a
/// last marker without length ends with the rank's work. Others are counted.
void find_recorded(const RankTrace& rank, RankPass& pass);

// The rules for iterations that are not settled. One that any rank leaves out is left out on all.
//
//   first            the first recorded of several: the window may have cut it, what was queued
//                    before runs in it, and the host has not got as far ahead as it will
//   few operations   fewer than half as many device operations as the rank's median iteration: the
//                    window closed before the device had done its work
//   allocations      more than twice as many device allocations and frees as the median iteration,
//                    and over 5 % of its time for them beyond the least time that an iteration
//                    needs for them: an allocator that fills or empties its cache
//   new kernels      of those before anything settled: kernels that no later iteration launches
//                    take over 5 % of its kernel time: autotuning, compilation
//   slow start       of those before anything settled: over 50 % more host time than the median of
//                    the iterations after it: caches, compilation, lazy initialisation
//
// A simulation has no warm-up: of its trace, only the first is left out.
//
// Sources of the bounds: TorchRec's traces of 4 x V100 (settled iterations spend 12 % of their time
// in 3 to 5 allocations, storms 25 to 65 % in 30 or more); a settled iteration of the same training
// launches the same kernels, so that 5 % is room for data-dependent shapes;
// settled iterations of recorded jobs with four markers or more differ by up to 25 %.

/// Sets `use` of a rank's iterations, as far as the rank alone shows it. Precondition: device work
/// is assigned.
void find_warm_up(const RankTrace& rank, RankPass& pass);

// Assigns each device operation to an iteration; job_pass.hpp has the rules.

inline constexpr CounterSpec kQueuedBefore{
    "iteration_ops_queued_before", Severity::kNotice,
    "device operations that were queued before the recording began (no launch of theirs or of "
    "anything before them on their stream is recorded); part of no iteration"};

/// Sets `iteration_of` and the iterations' `operations` from `recorded`, and counts unassigned
/// work.
void assign_device_work(const RankTrace& rank, RankPass& pass);

}  // namespace bubblesim::traces
