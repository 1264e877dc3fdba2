// The ranks of a job without a trace.
#pragma once

#include "sim/base/counters.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

inline constexpr CounterSpec kRanksMissing{"job_ranks_missing", Severity::kNotice,
    "ranks of the job for which there is no file"};

/// Counts the missing ranks in the first rank's counters, and lists them there. Removes each file's
/// own counts: a rank that one file lacks may be in another. Precondition: the job has ranks,
/// ordered by rank.
void count_missing_ranks(JobTrace& job);

}  // namespace bubblesim::traces
