// What streams' waits for events hold back: the operations of each stream in the order of their
// launches, and what an event record comes after.
//
// An event comes after all that its stream does before the record: its last operation, and what the
// stream has been told to wait for since, though no operation stands between that wait and the
// record.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// A stream waits for an event; calls are indices of host calls, streams of streams.
struct EventWait {
  std::uint32_t source = 0;  ///< the stream on which the event was recorded
  std::uint32_t record_call = 0;
  std::uint32_t stream = 0;  ///< the one that waits
  std::uint32_t wait_call = 0;
};

/// Adds to `trace` an edge from each operation that a wait is for to the first one launched on the
/// waiting stream after it. Says how many waits have none: what they are for, or hold back, is
/// not in the trace. The operations of `trace` are final: sorted, launches linked.
std::uint64_t add_wait_edges(std::vector<EventWait> waits, RankTrace& trace);

}  // namespace bubblesim::traces
