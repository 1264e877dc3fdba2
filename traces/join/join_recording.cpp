#include "traces/join/join_recording.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "traces/join/join_counters.hpp"
#include "traces/join/join_parts.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

template <class Record>
void sort_by_start(std::vector<Record>& records) {
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.start < b.start; });
}
template <class Record>
void sort_by_time(std::vector<Record>& records) {
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.at < b.at; });
}

void sort_all(RankTrace& trace) {
  // Of calls that start together, the longer is the outer one.
  std::stable_sort(trace.host_calls.begin(), trace.host_calls.end(),
                   [](const HostCall& a, const HostCall& b) {
                     return a.start != b.start ? a.start < b.start : a.duration > b.duration;
                   });
  sort_by_start(trace.device_ops);
  sort_by_start(trace.markers);
  sort_by_start(trace.stalls);
  sort_by_start(trace.notes);
  sort_by_time(trace.memory);
  sort_by_time(trace.clocks);
  sort_by_time(trace.syncs);
}

/// The runtime calls the driver: where both were recorded, the inner call says nothing new.
void drop_nested_calls(RankTrace& trace) {
  struct Open {
    TraceTime end = TraceTime::min();
    std::uint64_t correlation = 0;
  };
  std::vector<Open> outer(trace.threads.size());
  const std::size_t before = trace.host_calls.size();
  std::erase_if(trace.host_calls, [&outer](const HostCall& call) {
    Open& open = outer[call.thread.index()];
    if (call.correlation != 0 && call.correlation == open.correlation && call.end() <= open.end) {
      return true;
    }
    if (call.end() >= open.end) open = {call.end(), call.correlation};
    return false;
  });
  if (const std::size_t dropped = before - trace.host_calls.size(); dropped > 0) {
    trace.counters.add(join::kNestedCalls, dropped);
  }
}

void link_launches(const CallIndex& index, RankTrace& trace) {
  std::vector<std::uint32_t> uses(trace.host_calls.size(), 0);
  std::uint64_t orphans = 0, early = 0, of_graphs = 0, idle = 0;
  for (DeviceOp& op : trace.device_ops) {
    op.launch = index.find(op.correlation, op.start, CallIndex::Want::kLaunch);
    if (op.launch == kNone) {
      ++orphans;
      continue;
    }
    ++uses[op.launch];
    early += op.start < trace.host_calls[op.launch].start ? 1 : 0;
  }
  for (const DeviceOp& op : trace.device_ops) {
    of_graphs += op.launch != kNone && uses[op.launch] > 1 ? 1 : 0;
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    idle += uses[i] == 0 && launches(trace.host_calls[i].kind) ? 1 : 0;
  }
  const auto add = [&trace](const CounterSpec& spec, std::uint64_t count) {
    if (count > 0) trace.counters.add(spec, count);
  };
  add(join::kOrphanOps, orphans);
  add(join::kEarlyOps, early);
  add(join::kGraphOps, of_graphs);
  add(join::kIdleLaunches, idle);
}

/// Correlations unique by call, and operations those of their launches.
void make_correlations_unique(const CallIndex& index, RankTrace& trace) {
  const std::uint64_t renumbered = index.renumber(trace.host_calls);
  if (renumbered == 0) return;
  trace.counters.add(join::kRenumbered, renumbered);
  for (DeviceOp& op : trace.device_ops) {
    if (op.launch != kNone) op.correlation = trace.host_calls[op.launch].correlation;
  }
}

void count_devices(RankTrace& trace) {
  std::map<std::uint32_t, std::uint64_t> ops;
  for (const DeviceOp& op : trace.device_ops) ++ops[trace.streams[op.stream.index()].device];
  std::uint64_t all = 0, most = 0;
  for (const auto& [device, count] : ops) {
    all += count;
    most = std::max(most, count);
  }
  if (all > most) trace.counters.add(join::kOtherDevices, all - most);
}

}  // namespace

bool is_recording(const RankTrace& trace) { return trace.provenance.format == kRecordingFormat; }

void join_recording(RankTrace& trace) {
  sort_all(trace);
  drop_nested_calls(trace);
  drop_stand_in_fills(trace);
  const CallIndex index(trace.host_calls);
  link_launches(index, trace);
  count_devices(trace);
  join_syncs(index, trace);
  join_collectives(trace);
  make_correlations_unique(index, trace);
  count_missing_shapes(trace);
  trace.syncs.clear();
  trace.notes.clear();
  if (is_recording(trace)) trace.provenance.format = kCaptureFormat;
}

}  // namespace bubblesim::traces
