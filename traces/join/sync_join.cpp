// Synchronisation records to streams and events of calls, and to edges between operations.
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/join/join_counters.hpp"
#include "traces/join/join_parts.hpp"
#include "traces/join/launch_order.hpp"

namespace bubblesim::traces {
namespace {

/// Where events were recorded: by event, the record calls in order of time. A driver that numbers
/// each recording gives lists of one; older ones give the event's number again and again.
class EventRecords {
 public:
  void add(std::uint64_t event, std::uint32_t call) { calls_[event].push_back(call); }
  void sort() {
    for (auto& [event, calls] : calls_) std::sort(calls.begin(), calls.end());
  }
  /// The last record of `event` before the call `wait`; kNone: none.
  [[nodiscard]] std::uint32_t last_record_before(std::uint64_t event, std::uint32_t wait) const {
    const auto found = calls_.find(event);
    if (found == calls_.end()) return kNone;
    const auto after = std::lower_bound(found->second.begin(), found->second.end(), wait);
    return after == found->second.begin() ? kNone : *std::prev(after);
  }

 private:
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> calls_;
};

struct Wait {
  std::uint32_t call;
  std::uint64_t event;
};

void name_call(HostCall& call, const SyncRecord& sync) {
  if (sync.stream != kNone) call.stream = sync.stream;
  if (sync.event != 0) call.event = sync.event;
}

struct Syncs {
  EventRecords records;
  std::vector<Wait> waits;
  std::uint64_t without_call = 0;
};

Syncs put_on_calls(const CallIndex& index, RankTrace& trace) {
  Syncs found;
  for (const SyncRecord& sync : trace.syncs) {
    const auto want = sync.kind == HostCallKind::kEventRecord ? CallIndex::Want::kEventRecord
                                                              : CallIndex::Want::kAny;
    const std::uint32_t call = index.find(sync.correlation, sync.at, want);
    if (call == kNone) {
      ++found.without_call;
      continue;
    }
    name_call(trace.host_calls[call], sync);
    if (sync.event == 0) continue;
    if (sync.kind == HostCallKind::kEventRecord) found.records.add(sync.event, call);
    if (sync.kind == HostCallKind::kStreamWaitEvent) found.waits.push_back({call, sync.event});
  }
  found.records.sort();
  return found;
}

}  // namespace

void join_syncs(const CallIndex& index, RankTrace& trace) {
  const Syncs syncs = put_on_calls(index, trace);
  std::vector<EventWait> waits;
  std::uint64_t without_record = 0;
  std::uint64_t without_edge = 0;
  for (const Wait& wait : syncs.waits) {
    const std::uint32_t record = syncs.records.last_record_before(wait.event, wait.call);
    if (record == kNone) {
      ++without_record;
      continue;
    }
    const std::uint32_t source = trace.host_calls[record].stream;
    const std::uint32_t stream = trace.host_calls[wait.call].stream;
    if (source != kNone && stream != kNone) waits.push_back({source, record, stream, wait.call});
    else ++without_edge;
  }
  without_edge += add_wait_edges(std::move(waits), trace);
  trace.counters.add(join::kSyncsWithoutCall, syncs.without_call);
  trace.counters.add(join::kWaitsWithoutRecord, without_record);
  trace.counters.add(join::kWaitsWithoutEdge, without_edge);
}

}  // namespace bubblesim::traces
