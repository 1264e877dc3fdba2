// Finds the host time of a pass that waits for earlier work.
//
// A synchronising call, or a free or a copy, waits for work from before the pass
//   - while operations run that do not belong to the pass, and none that does;
//   - synchronising calls also before any operation of the pass has begun on the device: the
//     awaited work may then be unrecorded;
// from 2 us after its start (the call's own time) until it returns or another thread launches work.
// A recording that opens with a 100 ms synchronisation thus begins at the end of that call, and a
// pass that begins while the device is busy with the previous pass counts that wait once, in the
// device's time.
//
// Other launches wait for earlier work if a full launch queue held them (host_clock.hpp), from 2 us
// after their start for as long as they were held, while work runs that was queued before the
// recording began, and no work of the pass.
//
// A pass that is the whole recording keeps its queue if as many launches at its end lack an
// operation as operations at its beginning lack a launch: these operations then replace the missing
// ones. Else operations queued before the recording belong to no iteration.
#pragma once

#include <vector>

#include "traces/iterations/job_pass.hpp"

namespace bubblesim::traces {

inline constexpr CounterSpec kQueueCut{
    "iteration_queue_cut", Severity::kLoss,
    "ranks whose pass begins with the recording, in operations that were queued before it, over 1 "
    "% of the pass: they are part of no iteration, so that the device idles in the pass where it "
    "did not in the recording (a recording with iteration markers has whole iterations)"};

/// Host time of a measured pass in which it may have waited for the device.
[[nodiscard]] Intervals host_waits(const RankTrace& rank, const RankPass& pass);

/// Sets `host`, `waits`, `host_time` and `device_time` of a pass whose iterations are chosen
/// (`first`, `count`) and whose device work is assigned.
void measure_pass(const RankTrace& rank, RankPass& pass);

// Removes the waits of a recording's first iteration for ranks that began it later.
//
// A rank whose window opens earlier waits in its first collectives for the later ones. A repeated
// iteration has no such wait: each rank begins where its own iteration ended. So a rank whose
// iteration was longer than the shortest one counts as late by the difference; at each collective,
// in order of time, the last rank to arrive decides how late all of its ranks continue. A rank's
// further wait is left out, also of its host's time, as far as the host waited. If the host went on
// meanwhile, its time may still include the wait, which is counted as a loss.
//
// Only for passes that begin with the recording, of ranks whose lengths differ by over 1 %.
// Collectives that meet are those of one group and kind whose ends are within 10 us.

inline constexpr CounterSpec kStartSkew{
    "iteration_start_skew", Severity::kNotice,
    "ranks that began the recording's first iteration before others did, and waited for these: "
    "that wait is left out, for it is not the job's"};
inline constexpr CounterSpec kStartSkewUnknown{
    "iteration_start_skew_unknown", Severity::kLoss,
    "ranks that began the recording's first iteration before others did: over 1 % of its time may "
    "be waiting for these, which is not the job's (a recording of several iterations says)"};

[[nodiscard]] bool has_collectives(const RankTrace& rank);

/// Removes waits for ranks that began later from measured passes; `traces` and `ranks` have equal
/// positions. Adds to `waits`, shortens `host_time` and `device_time`.
void leave_out_start_skew(const std::vector<const RankTrace*>& traces,
                          std::vector<RankPass>& ranks);

}  // namespace bubblesim::traces
