// The steps of join_recording that have files of their own. Calls and operations are sorted and
// operations tied to their launches before any of them.
#pragma once

#include "traces/join/call_index.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Puts streams and events of `trace.syncs` on their calls and adds the edges of stream waits.
void join_syncs(const CallIndex& index, RankTrace& trace);

/// Makes collectives of communication kernels and puts what `trace.notes` announce on them.
void join_collectives(RankTrace& trace);

}  // namespace bubblesim::traces
