// Turns the records of one file into a timeline: sorted, without duplicates, launches joined to
// device operations, waits to edges, collectives named and numbered.
#pragma once

#include "traces/import/kineto_reader.hpp"
#include "traces/import/kineto_records.hpp"
#include "traces/join/call_index.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// One rank for each GPU of the file's process (split_by_device). Complexity: O(n log n) in calls
/// and operations.
[[nodiscard]] std::vector<RankTrace> join_records(KinetoRecords records,
                                                  const KinetoMetadata& metadata);

/// Names streams and events of calls from synchronisation rows, and adds the edges of stream
/// waits to the trace, whose device operations are final.
void apply_sync_rows(const KinetoRecords& records, const CallIndex& index, RankTrace& trace);

/// Fills kinds, groups and sequence numbers of collectives that the file does not give.
void complete_collectives(std::vector<PendingCollective>& collectives,
                          std::vector<AnnouncedTransfer> announced,
                          const KinetoMetadata& metadata, RankTrace& trace);

}  // namespace bubblesim::traces
