// The operations that streams' waits for events hold back: the operations of each stream in the
// order of their launches, and the operations before an event record.
//
// An event comes after the last operation of its stream before the record, and after all operations
// that the stream was told to wait for between that operation and the record.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// A stream waits for an event. Members are indices into RankTrace::host_calls and ::streams.
struct EventWait {
  std::uint32_t source = 0;  ///< the stream on which the event was recorded
  std::uint32_t record_call = 0;
  std::uint32_t stream = 0;  ///< the waiting stream
  std::uint32_t wait_call = 0;
};

/// Adds an edge to `trace` for each wait: from the awaited operation to the first one launched on
/// the waiting stream after the wait. Returns the number of waits without an edge, because the
/// operation before or after them is not in the trace. The operations of `trace` are final: sorted,
/// launches linked.
std::uint64_t add_wait_edges(std::vector<EventWait> waits, RankTrace& trace);

}  // namespace bubblesim::traces
