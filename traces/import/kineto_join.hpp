// Turns the records of one file into a timeline: sorted, freed of duplicates, launches joined to
// device operations, waits to edges, collectives named and numbered.
#pragma once

#include "traces/import/kineto_metadata.hpp"
#include "traces/import/kineto_records.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Complexity: O(n log n) in calls and operations.
[[nodiscard]] RankTrace join_records(KinetoRecords records, const KinetoMetadata& metadata);

/// The launch of each operation, and unique correlations. Expects both sorted by start.
class LaunchIndex {
 public:
  explicit LaunchIndex(const std::vector<PendingCall>& calls);

  enum class Want { kLaunch, kEventRecord, kAny };
  /// Of the calls with this correlation, the last wanted one that starts at or before `at`, else
  /// the first wanted one after it, else the nearest of another sort. kNone: there is none.
  [[nodiscard]] std::uint32_t find(std::uint64_t correlation, TraceTime at, Want want) const;

  /// Gives every call but the first of a correlation a new one; returns how many.
  /// `calls` are those of the index, in its order.
  std::uint64_t renumber(std::vector<HostCall>& calls) const;

 private:
  struct Entry {
    std::uint64_t correlation;
    std::uint32_t call;
  };
  const std::vector<PendingCall>& calls_;
  std::vector<Entry> entries_;  ///< by correlation, then by call
};

/// Names streams and events of calls from synchronisation rows, and adds the edges of stream
/// waits to the trace, whose device operations are final.
void apply_sync_rows(const KinetoRecords& records, const LaunchIndex& index, RankTrace& trace);

/// Fills kinds, groups and sequence numbers of collectives that the file does not give.
void complete_collectives(std::vector<PendingCollective>& collectives,
                          const KinetoMetadata& metadata, RankTrace& trace);

}  // namespace bubblesim::traces
