// Synchronisation rows (category cuda_sync, recorded when CUPTI's synchronisation activity is
// on): the one place of a Kineto file that names the streams and events of waits.
#include <utility>
#include <vector>

#include "traces/import/kineto_counters.hpp"
#include "traces/import/kineto_join.hpp"
#include "traces/join/launch_order.hpp"

namespace bubblesim::traces {
namespace {

std::uint32_t stream_index(const KinetoRecords& records, std::uint32_t device,
                           std::int64_t system_id) {
  if (system_id < 0) return kNone;
  const auto found = records.stream_ids.find({device, static_cast<std::uint64_t>(system_id)});
  return found == records.stream_ids.end() ? kNone : found->second;
}

void name_call(HostCall& call, std::uint32_t stream, std::int64_t event) {
  if (stream != kNone) call.stream = stream;
  if (event > 0) call.event = static_cast<std::uint64_t>(event);
}

}  // namespace

void apply_sync_rows(const KinetoRecords& records, const CallIndex& index, RankTrace& trace) {
  if (records.syncs.empty()) return;
  std::vector<EventWait> waits;
  std::uint64_t without_edge = 0;
  for (const SyncRow& row : records.syncs) {
    const std::uint32_t call = index.find(row.correlation, row.at, CallIndex::Want::kAny);
    const std::uint32_t stream = stream_index(records, row.device, row.stream);
    const std::uint32_t source = stream_index(records, row.device, row.waits_for_stream);
    if (call != kNone) name_call(trace.host_calls[call], stream, row.event);
    if (row.record_correlation < 0) continue;
    const std::uint32_t record = index.find(static_cast<std::uint64_t>(row.record_correlation),
                                            row.at, CallIndex::Want::kEventRecord);
    if (record != kNone) name_call(trace.host_calls[record], source, row.event);
    if (row.kind != SyncRow::Kind::kStreamWait) continue;
    const bool known = call != kNone && record != kNone && stream != kNone && source != kNone;
    if (known) waits.push_back({source, record, stream, call});
    else ++without_edge;
  }
  without_edge += add_wait_edges(std::move(waits), trace);
  trace.counters.add(kineto::kEdgesWithoutOps, without_edge);
}

}  // namespace bubblesim::traces
