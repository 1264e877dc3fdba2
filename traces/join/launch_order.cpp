#include "traces/join/launch_order.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "traces/join/join_parts.hpp"
#include "traces/join/join_recording.hpp"

namespace bubblesim::traces {
namespace {

class LaunchOrder {
 public:
  explicit LaunchOrder(const RankTrace& trace)
      : trace_(trace), launched_(trace.streams.size()), held_(trace.streams.size()) {
    for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {
      const DeviceOp& op = trace.device_ops[i];
      if (op.launch != kNone) launched_[op.stream.index()].push_back({op.launch, i});
    }
    for (auto& ops : launched_) std::sort(ops.begin(), ops.end());
  }

  /// In the order of their calls. Says whether there is any edge.
  bool add(const EventWait& wait, std::vector<Edge>& edges) {
    std::vector<std::uint32_t> holding = held_since(wait.source, wait.record_call);
    const std::uint32_t before = last_before(wait.source, wait.record_call);
    if (before != kNone) keep_last(holding, launched_[wait.source][before].op);
    const auto& after = launched_[wait.stream];
    const auto next = std::lower_bound(after.begin(), after.end(), LaunchedOp{wait.wait_call, 0});
    bool any = false;
    std::vector<std::uint32_t> held = held_since(wait.stream, wait.wait_call);
    for (const std::uint32_t op : holding) {
      if (next != after.end() && op != next->op) {
        edges.push_back({DeviceOpId{op}, DeviceOpId{next->op}, false});
        any = true;
      }
      if (trace_.device_ops[op].stream.index() != wait.stream) keep_last(held, op);
    }
    held_[wait.stream].push_back({wait.wait_call, std::move(held)});
    return any;
  }

 private:
  struct LaunchedOp {
    std::uint32_t launch;
    std::uint32_t op;
    friend auto operator<=>(const LaunchedOp&, const LaunchedOp&) = default;
  };
  /// What a stream waits for from a call on, until its next operation: of each stream the last.
  struct Held {
    std::uint32_t call;
    std::vector<std::uint32_t> ops;
  };

  // Into launched_[stream]; kNone: nothing was launched there before the call.
  [[nodiscard]] std::uint32_t last_before(std::uint32_t stream, std::uint32_t call) const {
    const auto& ops = launched_[stream];
    const auto past = std::lower_bound(ops.begin(), ops.end(), LaunchedOp{call, 0});
    return past == ops.begin() ? kNone : static_cast<std::uint32_t>(past - ops.begin() - 1);
  }

  // What the stream waits for as of `call`, since its last operation.
  [[nodiscard]] std::vector<std::uint32_t> held_since(std::uint32_t stream,
                                                      std::uint32_t call) const {
    const auto& waits = held_[stream];
    const auto past = std::ranges::lower_bound(waits, call, {}, &Held::call);
    if (past == waits.begin()) return {};
    const std::uint32_t last = last_before(stream, call);
    const bool done = last != kNone && launched_[stream][last].launch > std::prev(past)->call;
    return done ? std::vector<std::uint32_t>{} : std::prev(past)->ops;
  }

  // One operation a stream: what comes before it there has ended when it has.
  void keep_last(std::vector<std::uint32_t>& ops, std::uint32_t added) const {
    const auto place = [this](std::uint32_t op) {
      return LaunchedOp{trace_.device_ops[op].launch, op};
    };
    for (std::uint32_t& op : ops) {
      if (trace_.device_ops[op].stream != trace_.device_ops[added].stream) continue;
      if (place(added) > place(op)) op = added;
      return;
    }
    ops.push_back(added);
  }

  const RankTrace& trace_;
  std::vector<std::vector<LaunchedOp>> launched_;  ///< by stream
  std::vector<std::vector<Held>> held_;            ///< by stream, in order of calls
};

}  // namespace

std::uint64_t add_wait_edges(std::vector<EventWait> waits, RankTrace& trace) {
  std::ranges::stable_sort(waits, {}, &EventWait::wait_call);
  LaunchOrder order(trace);
  std::uint64_t without_edge = 0;
  for (const EventWait& wait : waits) without_edge += order.add(wait, trace.edges) ? 0 : 1;
  return without_edge;
}

// Synchronisation records to streams and events of calls, and to edges between operations.

namespace {

/// Where events were recorded: by event, the record calls in order of time. A driver that numbers
/// each recording gives lists of one; older ones give the event's number again and again.
using EventRecords = std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>;

struct Wait {
  std::uint32_t call;
  std::uint64_t event;
};

/// The last record of the event before the wait; else, since a stream may be told to wait for a
/// value in memory before another is told to write it, the first after it; kNone: none.
std::uint32_t record_for(const Wait& wait, const EventRecords& records) {
  const auto found = records.find(wait.event);
  if (found == records.end()) return kNone;
  const std::vector<std::uint32_t>& calls = found->second;
  const auto [before, after] = std::ranges::equal_range(calls, wait.call);
  if (before != calls.begin()) return *std::prev(before);
  return (wait.event & kMemoryValue) == 0 || after == calls.end() ? kNone : *after;
}

void name_call(HostCall& call, const SyncRecord& sync) {
  if (sync.stream != kNone) call.stream = sync.stream;
  if (sync.event != 0) call.event = sync.event;
}

struct Syncs {
  EventRecords records;
  std::vector<Wait> waits;
  std::vector<std::uint32_t> devices;  ///< by call, plus 1; 0: not recorded
  std::uint64_t without_call = 0;
};

Syncs put_on_calls(const CallIndex& index, RankTrace& trace) {
  Syncs found;
  found.devices.resize(trace.host_calls.size());
  for (const SyncRecord& sync : trace.syncs) {
    const auto want = sync.kind == HostCallKind::kEventRecord ? CallIndex::Want::kEventRecord
                                                              : CallIndex::Want::kAny;
    const std::uint32_t call = index.find(sync.correlation, sync.at, want);
    if (call == kNone) {
      ++found.without_call;
      continue;
    }
    name_call(trace.host_calls[call], sync);
    if (sync.device != 0) found.devices[call] = sync.device;
    if (sync.event == 0) continue;
    if (sync.kind == HostCallKind::kEventRecord) found.records[sync.event].push_back(call);
    if (sync.kind == HostCallKind::kStreamWaitEvent) found.waits.push_back({call, sync.event});
  }
  for (auto& [event, calls] : found.records) std::ranges::sort(calls);
  return found;
}

}  // namespace

std::vector<std::uint32_t> join_syncs(const CallIndex& index, RankTrace& trace) {
  Syncs syncs = put_on_calls(index, trace);
  std::vector<EventWait> waits;
  std::uint64_t without_record = 0;
  std::uint64_t without_edge = 0;
  for (const Wait& wait : syncs.waits) {
    const std::uint32_t record = record_for(wait, syncs.records);
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
  return std::move(syncs.devices);
}

}  // namespace bubblesim::traces
