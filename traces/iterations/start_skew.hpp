// The time that ranks wait, in a recording's first iteration, for ranks that began it later.
//
// A rank that opens its window earlier waits in its first collectives for those that open theirs
// later. In a repeated iteration it does not wait: each rank begins where its own iteration ended.
// So a rank that took longer than the shortest one is taken to be late by the difference; at each
// collective, in order of time, the last rank to come decides how late all of its ranks go on, and
// a rank's wait beyond that is left out of the device's time, and of the host's as far as the host
// waited too. If the host went on meanwhile, its time may still contain the wait: that is counted
// as a loss.
//
// Only for passes that begin with the recording, of ranks whose lengths differ by over 1 %.
// Collectives that meet are those of one group and kind whose ends are within 10 us.
#pragma once

#include <vector>

#include "traces/iterations/job_pass.hpp"

namespace bubblesim::traces {

inline constexpr CounterSpec kStartSkew{
    "iteration_start_skew", Severity::kNotice,
    "ranks that began the recording's first iteration before others did, and waited for these: "
    "that wait is left out, for it is not the job's"};
inline constexpr CounterSpec kStartSkewUnknown{
    "iteration_start_skew_unknown", Severity::kLoss,
    "ranks that began the recording's first iteration before others did: over 1 % of its time may "
    "be waiting for these, which is not the job's (a recording of several iterations says)"};

[[nodiscard]] bool has_collectives(const RankTrace& rank);

/// Takes the waits out of measured passes, by position of the rank: adds to `waits`, shortens
/// `host_time` and `device_time`.
void leave_out_start_skew(const std::vector<const RankTrace*>& traces,
                          std::vector<RankPass>& ranks);

}  // namespace bubblesim::traces
