#include "traces/join/join_recording.hpp"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "traces/join/join_parts.hpp"
#include "traces/join/split_devices.hpp"
#include "traces/launch_shapes.hpp"
#include "traces/sort_records.hpp"

namespace bubblesim::traces {
namespace {

void sort_all(RankTrace& trace) {
  // Among calls that start together, the longer is the outer one.
  std::ranges::stable_sort(trace.host_calls, [](const HostCall& a, const HostCall& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
  std::ranges::stable_sort(trace.device_ops, {}, &DeviceOp::start);
  std::ranges::stable_sort(trace.markers, {}, &Marker::start);
  std::ranges::stable_sort(trace.stalls, {}, &HostStall::start);
  std::ranges::stable_sort(trace.notes, {}, &CollectiveNote::start);
  std::ranges::stable_sort(trace.memory, {}, &MemorySample::at);
  std::ranges::stable_sort(trace.clocks, {}, &ClockPair::at);
  std::ranges::stable_sort(trace.syncs, {}, &SyncRecord::at);
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

namespace {

/// All of join_recording but for what a process of several GPUs has. As join_syncs.
std::vector<std::uint32_t> join_records(RankTrace& trace) {
  undo_clock_steps(trace);
  sort_all(trace);
  drop_nested_calls(trace);
  drop_stand_in_fills(trace);
  const CallIndex index(trace.host_calls);
  tie_to_launches(index, trace);
  std::vector<std::uint32_t> devices = join_syncs(index, trace);
  join_collectives(trace);
  make_correlations_unique(index, trace);
  drop_impossible_ops(trace);
  count_missing_shapes(trace);
  trace.syncs.clear();
  trace.notes.clear();
  if (is_recording(trace)) trace.provenance.format = kCaptureFormat;
  return devices;
}

/// Where no launcher's variables named the rank (vLLM's workers, mp.spawn), NCCL's largest
/// communicator does. False: nothing to take.
bool take_rank_of_nccl(RankTrace& trace) {
  const auto size = [](const Collective& record) {
    return record.place == 0 ? 1U : record.group_size;
  };
  const auto largest = std::ranges::max_element(trace.collectives, {}, size);
  if (largest == trace.collectives.end() || size(*largest) < 2) return false;
  trace.rank = largest->place - 1;
  trace.world_size = largest->group_size;
  return true;
}

bool distinct(std::vector<RankTrace>& ranks) {
  std::ranges::stable_sort(ranks, {}, &RankTrace::rank);
  return std::ranges::adjacent_find(ranks, {}, &RankTrace::rank) == ranks.end();
}

/// The ranks of a process that the launcher calls `first` of `processes`: as NCCL says, else the
/// first GPU keeps the number, and the others come after those of all processes.
void number_gpus(std::vector<RankTrace>& ranks, std::uint32_t first, std::uint32_t processes) {
  const auto gpus = static_cast<std::uint32_t>(ranks.size());
  bool named = true;
  for (RankTrace& rank : ranks) named = take_rank_of_nccl(rank) && named;
  named = named && distinct(ranks);
  for (std::uint32_t i = 0; i < gpus && !named; ++i) {
    ranks[i].rank = i == 0 ? first : processes + first * (gpus - 1) + i - 1;
    ranks[i].world_size = processes * gpus;
  }
  ranks.front().counters.add(join::kGpusNumbered, named ? 0 : gpus);
  for (RankTrace& rank : ranks) rank.process = ranks.front().rank + 1;
}

}  // namespace

void join_recording(RankTrace& trace) {
  static_cast<void>(join_records(trace));
  count_devices(trace);
}

std::vector<RankTrace> join_process(RankTrace trace) {
  std::vector<RankTrace> ranks;
  if (!is_recording(trace)) {
    ranks.push_back(std::move(trace));
    return ranks;
  }
  const DeviceInfo device = trace.device;
  const std::uint32_t rank = trace.rank;
  const std::uint32_t world = trace.world_size;
  // Before joining: announcements whose kernels are not in the recording name the rank, too.
  if (rank == 0 && world <= 1) static_cast<void>(take_rank_of_nccl(trace));
  const std::vector<std::uint32_t> devices = join_records(trace);
  ranks = split_by_device(std::move(trace), devices);
  if (ranks.size() == 1) return ranks;
  for (RankTrace& split : ranks) split.device = device;
  number_gpus(ranks, rank, world);
  return ranks;
}

// Operations at times that no call allows: they start long before their launch, or end long after a
// call that waited for them has returned. Profilers are known to write such times for a few
// operations; where most have them, the clocks of host and device are apart, and all are kept.

namespace {

/// Clocks of host and device are never so far apart.
constexpr Duration kMostOffset = std::chrono::microseconds(200);

using OpList = std::vector<std::uint32_t>;  ///< into RankTrace::device_ops

OpList start_too_early(const RankTrace& trace, const OpList& launched) {
  OpList found;
  for (const std::uint32_t i : launched) {
    const DeviceOp& op = trace.device_ops[i];
    if (trace.host_calls[op.launch].start - op.start > kMostOffset) found.push_back(i);
  }
  return found;
}

/// Operations whose end no call has waited for yet, by stream.
class Pending {
 public:
  explicit Pending(const RankTrace& trace) : trace_(trace), ops_(trace.streams.size()) {
    const auto other = [&](const Stream& stream) {
      return stream.device != trace.streams.front().device;
    };
    one_device_ = std::ranges::none_of(trace.streams, other);
  }

  void add(std::uint32_t op) { ops_[trace_.device_ops[op].stream.index()].push_back(op); }

  /// Adds to `found` what ends long after the call.
  void wait(const HostCall& call, OpList& found) {
    if (call.kind == HostCallKind::kStreamSync && call.stream < ops_.size()) {
      wait(call, ops_[call.stream], found);
    } else if (call.kind == HostCallKind::kDeviceSync && one_device_) {
      for (OpList& ops : ops_) wait(call, ops, found);
    }
  }

 private:
  // A launch that has not returned as the call begins may come after it.
  void wait(const HostCall& call, OpList& ops, OpList& found) {
    std::erase_if(ops, [&](std::uint32_t i) {
      const DeviceOp& op = trace_.device_ops[i];
      if (trace_.host_calls[op.launch].end() > call.start) return false;
      if (op.end() - call.end() > kMostOffset) found.push_back(i);
      return true;
    });
  }

  const RankTrace& trace_;
  std::vector<OpList> ops_;
  bool one_device_ = true;  ///< a call waits for one device; which it is, is not recorded
};

OpList end_too_late(const RankTrace& trace, const OpList& launched) {
  OpList found;
  Pending pending(trace);
  auto next = launched.begin();
  for (std::uint32_t i = 0; i < trace.host_calls.size(); ++i) {
    pending.wait(trace.host_calls[i], found);
    for (; next != launched.end() && trace.device_ops[*next].launch == i; ++next) {
      pending.add(*next);
    }
  }
  return found;
}

void drop(RankTrace& trace, const OpList& ops) {
  std::vector<std::uint32_t> places(trace.device_ops.size());
  for (const std::uint32_t op : ops) places[op] = kNone;
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    if (places[i] == kNone) continue;
    places[i] = kept;
    trace.device_ops[kept++] = trace.device_ops[i];
  }
  trace.device_ops.resize(kept);
  std::erase_if(trace.edges, [&](const Edge& edge) {
    return places[edge.before.index()] == kNone || places[edge.after.index()] == kNone;
  });
  for (Edge& edge : trace.edges) {
    edge.before.value = places[edge.before.index()];
    edge.after.value = places[edge.after.index()];
  }
}

}  // namespace

void drop_impossible_ops(RankTrace& trace) {
  const auto drop_few = [&](auto find, const CounterSpec& counter) {
    const OpList launched = ops_by_launch(trace);
    const OpList found = find(trace, launched);
    if (found.empty() || 2 * found.size() > launched.size()) return;
    drop(trace, found);
    trace.counters.add(counter, found.size());
  };
  drop_few(start_too_early, join::kImpossibleStarts);
  drop_few(end_too_late, join::kImpossibleEnds);
}

// What a stand-in of collectives (capture/torch) does to give its outputs values is no work of the
// job that it stands in for: calls within its ranges, and the operations that they launched.

namespace {

constexpr std::string_view kFillRange = "bubblesim.fill";

bool is_fill(std::string_view name) {
  const std::size_t at = name.find(kFillRange);
  if (at == std::string_view::npos) return false;
  const std::size_t end = at + kFillRange.size();
  return end == name.size() || name[end] == ' ';
}

using Ranges = std::vector<std::vector<const Marker*>>;

/// By thread, in order of start. Fills do not nest.
Ranges fill_ranges(const RankTrace& trace) {
  std::vector<bool> fills(trace.names.size());
  bool has_fills = false;
  for (std::uint32_t i = 0; i < trace.names.size(); ++i) {
    fills[i] = is_fill(trace.names[NameId{i}]);
    has_fills = has_fills || fills[i];
  }
  Ranges ranges;
  if (!has_fills) return ranges;
  ranges.resize(trace.threads.size());
  for (const Marker& marker : trace.markers) {
    if (fills[marker.name.index()]) ranges[marker.thread.index()].push_back(&marker);
  }
  return ranges;
}

bool is_inside(const std::vector<const Marker*>& ranges, const HostCall& call) {
  const auto after = std::ranges::upper_bound(ranges, call.start, {}, &Marker::start);
  if (after == ranges.begin()) return false;
  const Marker& range = **std::prev(after);
  return call.end() <= range.start + range.duration;
}

}  // namespace

void drop_stand_in_fills(RankTrace& trace) {
  const Ranges ranges = fill_ranges(trace);
  if (ranges.empty()) return;
  std::unordered_set<std::uint64_t> dropped;
  std::erase_if(trace.host_calls, [&](const HostCall& call) {
    if (call.correlation == 0 || !is_inside(ranges[call.thread.index()], call)) return false;
    dropped.insert(call.correlation);
    return true;
  });
  const std::size_t ops = std::erase_if(trace.device_ops, [&](const DeviceOp& op) {
    return dropped.contains(op.correlation);
  });
  std::erase_if(trace.syncs, [&](const SyncRecord& sync) {
    return dropped.contains(sync.correlation);
  });
  trace.counters.add(join::kFillsDropped, ops);
}

}  // namespace bubblesim::traces
