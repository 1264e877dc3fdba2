// The steps of join_recording that have files of their own, in their order. Records are sorted
// before all of them; operations are tied to their launches before the last two.
#pragma once

#include "traces/join/call_index.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Drops what stand-ins of collectives did to give their outputs values.
void drop_stand_in_fills(RankTrace& trace);

/// Puts streams and events of `trace.syncs` on their calls and adds the edges of stream waits.
void join_syncs(const CallIndex& index, RankTrace& trace);

/// Makes collectives of communication kernels and puts what `trace.notes` announce on them.
void join_collectives(RankTrace& trace);

/// Drops the few operations that start over 200 us before their launch, or end over 200 us after a
/// call that waited for them has returned. Launches, streams of calls and edges are known.
void drop_impossible_ops(RankTrace& trace);

}  // namespace bubblesim::traces
