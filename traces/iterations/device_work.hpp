// Which iteration each device operation belongs to; the rule is in job_pass.hpp.
#pragma once

#include "traces/iterations/job_pass.hpp"

namespace bubblesim::traces {

inline constexpr CounterSpec kQueuedBefore{
    "iteration_ops_queued_before", Severity::kNotice,
    "device operations that were queued before the recording began (no launch of theirs or of "
    "anything before them on their stream is recorded); part of no iteration"};

/// Sets `iteration_of` and the iterations' `operations` from `recorded`, and counts what belongs
/// to none.
void assign_device_work(const RankTrace& rank, RankPass& pass);

}  // namespace bubblesim::traces
