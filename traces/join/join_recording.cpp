#include "traces/join/join_recording.hpp"

#include <algorithm>
#include <vector>

#include "traces/join/join_parts.hpp"
#include "traces/join/split_devices.hpp"
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
  trace.counters.add(join::kNestedCalls, before - trace.host_calls.size());
}

void tie_to_launches(const CallIndex& index, RankTrace& trace) {
  const LaunchCounts counts = link_launches(index, trace.device_ops, trace.host_calls);
  trace.counters.add(join::kOrphanOps, counts.orphans);
  trace.counters.add(join::kEarlyOps, counts.early);
  trace.counters.add(join::kGraphOps, counts.of_graphs);
  trace.counters.add(join::kIdleLaunches, counts.idle);
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
  const std::uint32_t most = main_device(trace);
  const auto elsewhere = std::ranges::count_if(trace.device_ops, [&](const DeviceOp& op) {
    return trace.streams[op.stream.index()].device != most;
  });
  trace.counters.add(join::kOtherDevices, static_cast<std::uint64_t>(elsewhere));
}

}  // namespace

bool is_recording(const RankTrace& trace) { return trace.provenance.format == kRecordingFormat; }

void join_recording(RankTrace& trace) {
  sort_all(trace);
  drop_nested_calls(trace);
  drop_stand_in_fills(trace);
  const CallIndex index(trace.host_calls);
  tie_to_launches(index, trace);
  count_devices(trace);
  join_syncs(index, trace);
  join_collectives(trace);
  make_correlations_unique(index, trace);
  drop_impossible_ops(trace);
  count_missing_shapes(trace);
  trace.syncs.clear();
  trace.notes.clear();
  if (is_recording(trace)) trace.provenance.format = kCaptureFormat;
}

}  // namespace bubblesim::traces
