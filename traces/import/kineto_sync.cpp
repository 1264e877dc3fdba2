// Synchronisation rows (category cuda_sync, recorded when CUPTI's synchronisation activity is
// on): the one place of a Kineto file that names the streams and events of waits.
#include <algorithm>
#include <vector>

#include "traces/import/kineto_counters.hpp"
#include "traces/import/kineto_join.hpp"

namespace bubblesim::traces {
namespace {

/// Operations of one stream that have a launch, in launch order.
struct LaunchedOp {
  std::uint32_t launch;
  std::uint32_t op;
  friend auto operator<=>(const LaunchedOp&, const LaunchedOp&) = default;
};

std::vector<std::vector<LaunchedOp>> ops_by_stream(const RankTrace& trace) {
  std::vector<std::vector<LaunchedOp>> streams(trace.streams.size());
  for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {
    const DeviceOp& op = trace.device_ops[i];
    if (op.launch != kNone) streams[op.stream.index()].push_back({op.launch, i});
  }
  for (auto& ops : streams) std::sort(ops.begin(), ops.end());
  return streams;
}

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

/// From the last operation launched before the record call to the first after the wait call.
bool add_edge(const std::vector<LaunchedOp>& before, std::uint32_t record_call,
              const std::vector<LaunchedOp>& after, std::uint32_t wait_call, RankTrace& trace) {
  const auto past = std::lower_bound(before.begin(), before.end(), LaunchedOp{record_call, 0});
  const auto next = std::lower_bound(after.begin(), after.end(), LaunchedOp{wait_call, 0});
  if (past == before.begin() || next == after.end()) return false;
  const Edge edge{DeviceOpId{std::prev(past)->op}, DeviceOpId{next->op}, false};
  if (edge.before == edge.after) return false;
  trace.edges.push_back(edge);
  return true;
}

}  // namespace

void apply_sync_rows(const KinetoRecords& records, const LaunchIndex& index, RankTrace& trace) {
  if (records.syncs.empty()) return;
  const auto streams = ops_by_stream(trace);
  std::uint64_t without_edge = 0;
  for (const SyncRow& row : records.syncs) {
    const std::uint32_t call = index.find(row.correlation, row.at, LaunchIndex::Want::kAny);
    const std::uint32_t stream = stream_index(records, row.device, row.stream);
    const std::uint32_t source = stream_index(records, row.device, row.waits_for_stream);
    if (call != kNone) name_call(trace.host_calls[call], stream, row.event);
    if (row.record_correlation < 0) continue;
    const std::uint32_t record = index.find(static_cast<std::uint64_t>(row.record_correlation),
                                            row.at, LaunchIndex::Want::kEventRecord);
    if (record != kNone) name_call(trace.host_calls[record], source, row.event);
    if (row.kind != SyncRow::Kind::kStreamWait) continue;
    const bool known = call != kNone && record != kNone && stream != kNone && source != kNone;
    if (!known || !add_edge(streams[source], record, streams[stream], call, trace)) {
      ++without_edge;
    }
  }
  if (without_edge > 0) trace.counters.add(kineto::kEdgesWithoutOps, without_edge);
}

}  // namespace bubblesim::traces
