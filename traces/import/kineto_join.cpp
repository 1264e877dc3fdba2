#include "traces/import/kineto_join.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/divide.hpp"
#include "sim/base/nearest_rank.hpp"
#include "traces/import/kineto_counters.hpp"
#include "traces/join/join_parts.hpp"
#include "traces/sort_records.hpp"
#include "traces/join/split_devices.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

// One order of a file's records, and one numbering of what they name, whatever order the events
// stood in: profilers write them as their buffers come, tools that rewrite a file as they like.

/// What decides between records of the same time. Ids do not: they follow the order of events.
class Ties {
 public:
  explicit Ties(const KinetoRecords& records) : records_(records) {
    threads_.resize(records.thread_ids.size());
    std::uint32_t place = 0;
    for (const auto& [key, id] : records.thread_ids) threads_[id.index()] = place++;
  }

  template <class Record>
  [[nodiscard]] bool earlier(const Record& a, const Record& b) const {
    return a.start != b.start ? a.start < b.start : key(a) < key(b);
  }

 private:
  [[nodiscard]] const std::string& name(NameId id) const { return records_.trace.names[id]; }

  [[nodiscard]] std::tuple<std::uint64_t, std::uint32_t, std::uint64_t, std::uint64_t, Duration,
                           const std::string&, LaunchShape, std::uint64_t>
  key(const PendingOp& op) const {
    const Stream& stream = records_.trace.streams[op.stream.index()];
    return {op.correlation, stream.device, stream.system_id, op.graph_node, op.duration,
            name(op.name), has_shape(op) ? records_.trace.shapes[op.shape] : LaunchShape{},
            op.bytes};
  }
  [[nodiscard]] std::tuple<Duration, std::uint64_t, std::uint32_t, const std::string&,
                           std::uint64_t>
  key(const PendingCall& call) const {
    return {-call.duration, call.correlation, threads_[call.thread.index()], name(call.name),
            call.stream_pointer.value_or(0)};
  }
  [[nodiscard]] std::tuple<Duration, std::uint32_t, const std::string&> key(
      const Marker& marker) const {
    return {-marker.duration, threads_[marker.thread.index()], name(marker.name)};
  }

  const KinetoRecords& records_;
  std::vector<std::uint32_t> threads_;  ///< place of each thread in the order of their keys
};

bool earlier_sample(const MemorySample& a, const MemorySample& b) {
  return std::tuple(a.at, a.allocated_bytes, a.reserved_bytes) <
         std::tuple(b.at, b.allocated_bytes, b.reserved_bytes);
}

bool earlier_row(const SyncRow& a, const SyncRow& b) {
  const auto key = [](const SyncRow& row) {
    return std::tuple(row.at, row.correlation, row.device, row.kind, row.stream,
                      row.waits_for_stream, row.record_correlation, row.event);
  };
  return key(a) < key(b);
}

/// New numbers in the order of first use.
class Numbering {
 public:
  explicit Numbering(std::size_t size) : numbers_(size, kNone) {}

  void use(std::uint32_t& id) {
    std::uint32_t& number = numbers_[id];
    if (number == kNone) {
      number = static_cast<std::uint32_t>(used_.size());
      used_.push_back(id);
    }
    id = number;
  }
  template <class Tag>
  void use(StrongId<Tag>& id) {
    use(id.value);
  }
  /// Old numbers by their new ones.
  [[nodiscard]] const std::vector<std::uint32_t>& used() const { return used_; }

 private:
  std::vector<std::uint32_t> numbers_;
  std::vector<std::uint32_t> used_;
};

template <class Item>
void pick(std::vector<Item>& items, const Numbering& numbering) {
  std::vector<Item> picked;
  picked.reserve(numbering.used().size());
  for (const std::uint32_t old : numbering.used()) picked.push_back(std::move(items[old]));
  items = std::move(picked);
}

void number_names(RankTrace& trace) {
  Numbering names(trace.names.size());
  NameId none{};
  names.use(none);
  for (DeviceOp& op : trace.device_ops) names.use(op.name);
  for (HostCall& call : trace.host_calls) names.use(call.name);
  for (Marker& marker : trace.markers) names.use(marker.name);
  for (Collective& collective : trace.collectives) names.use(collective.group);
  StringTable table;
  for (const std::uint32_t old : names.used()) table.intern(trace.names[NameId{old}]);
  trace.names = std::move(table);
}

void number_shapes(RankTrace& trace) {
  Numbering shapes(trace.shapes.size());
  for (DeviceOp& op : trace.device_ops) {
    if (has_shape(op)) shapes.use(op.shape);
  }
  ShapeTable<LaunchShape> table;
  for (const std::uint32_t old : shapes.used()) table.intern(trace.shapes[ShapeId{old}]);
  trace.shapes = std::move(table);
}

// Sorts all records by time, and records of one time: operations by launch, then by graph node;
// calls and markers the enclosing one first; then by what they say. Counts device operations that
// stood before one that started earlier.
void sort_records(KinetoRecords& records) {
  std::uint64_t inversions = 0;
  for (std::size_t i = 1; i < records.ops.size(); ++i) {
    inversions += records.ops[i].start < records.ops[i - 1].start ? 1 : 0;
  }
  records.trace.counters.add(kineto::kUnsorted, inversions);
  const Ties ties(records);
  const auto earlier = [&ties](const auto& a, const auto& b) { return ties.earlier(a, b); };
  sort_stably(records.ops, earlier);
  sort_stably(records.calls, earlier);
  sort_stably(records.trace.markers, earlier);
  sort_stably(records.trace.memory, earlier_sample);
  sort_stably(records.syncs, earlier_row);
}

// Numbers names, shapes, threads and streams in the order in which the sorted records use them;
// what none uses is left out. Name 0 stays the empty one.
void number_by_use(RankTrace& trace) {
  number_names(trace);
  number_shapes(trace);
  Numbering threads(trace.threads.size());
  for (HostCall& call : trace.host_calls) threads.use(call.thread);
  for (Marker& marker : trace.markers) threads.use(marker.thread);
  for (HostStall& stall : trace.stalls) threads.use(stall.thread);
  pick(trace.threads, threads);
  Numbering streams(trace.streams.size());
  for (DeviceOp& op : trace.device_ops) streams.use(op.stream);
  for (HostCall& call : trace.host_calls) {
    if (call.stream != kNone) streams.use(call.stream);
  }
  pick(trace.streams, streams);
}

void shift_all(KinetoRecords& records, Duration shift) {
  for (PendingCall& call : records.calls) call.start += shift;
  for (PendingOp& op : records.ops) op.start += shift;
  for (Marker& marker : records.trace.markers) marker.start += shift;
  for (MemorySample& sample : records.trace.memory) sample.at += shift;
  for (HostStall& stall : records.trace.stalls) stall.start += shift;
  for (SyncRow& row : records.syncs) row.at += shift;
  for (AnnouncedTransfer& entry : records.announced) entry.start += shift;
}

// A launch takes some 5 us, and more where it loads a module or waits: not half of them.
bool launches_last_long(const KinetoRecords& records) {
  constexpr std::size_t kTelling = 8;
  std::vector<Duration> durations;
  for (const PendingCall& call : records.calls) {
    if (call.kind == HostCallKind::kLaunchKernel) durations.push_back(call.duration);
  }
  return durations.size() >= kTelling &&
         upper_median(std::move(durations)) >= std::chrono::milliseconds(1);
}

bool same_call(const PendingCall& a, const PendingCall& b) {
  return a.correlation != 0 && a.correlation == b.correlation && a.start == b.start &&
         a.duration == b.duration && a.thread == b.thread && a.name == b.name;
}

bool same_op(const PendingOp& a, const PendingOp& b) {
  return a.correlation == b.correlation && a.start == b.start && a.duration == b.duration &&
         a.stream == b.stream && a.name == b.name && a.shape == b.shape && a.bytes == b.bytes &&
         a.graph_node == b.graph_node;
}

/// Equal operations are duplicates, except where two of one graph launch may truly be equal:
/// when times are whole microseconds.
std::uint64_t remove_duplicate_ops(KinetoRecords& records, const CallIndex& index) {
  const auto may_repeat = [&](const DeviceOp& op) {
    if (records.any_fraction) return false;
    const std::uint32_t call = index.find(op.correlation, op.start, CallIndex::Want::kLaunch);
    return call == kNone || records.calls[call].kind == HostCallKind::kLaunchGraph;
  };
  return remove_duplicates(records.ops, [&](const PendingOp& a, const PendingOp& b) {
    return same_op(a, b) && !may_repeat(b);
  });
}

/// AMD calls name a stream by its handle; operations that they launched tell which it is.
void resolve_pointers(KinetoRecords& records) {
  std::map<std::uint64_t, std::uint32_t> streams;
  for (const PendingOp& op : records.ops) {
    if (op.launch == kNone) continue;
    const PendingCall& call = records.calls[op.launch];
    if (call.stream_pointer) streams.try_emplace(*call.stream_pointer, op.stream.value);
  }
  for (PendingCall& call : records.calls) {
    if (!call.stream_pointer) continue;
    const auto found = streams.find(*call.stream_pointer);
    if (found != streams.end()) call.stream = found->second;
  }
}

void describe_device(const KinetoMetadata& metadata, RankTrace& rank) {
  if (metadata.devices.empty()) return;
  const auto found = metadata.devices.find(main_device(rank));
  if (found == metadata.devices.end()) rank.counters.add(kineto::kDeviceGuessed);
  rank.device = found == metadata.devices.end() ? metadata.devices.begin()->second
                                                : found->second;
}

void name_threads(const KinetoRecords& records, RankTrace& trace) {
  for (const auto& [key, id] : records.thread_ids) {
    const auto found = records.thread_names.find(key);
    if (found != records.thread_names.end()) trace.threads[id.index()].name = found->second;
  }
}

void count_skipped(KinetoRecords& records) {
  CounterSet& counters = records.trace.counters;
  const auto add = [&](const CounterSpec& spec, KinetoCategory category) {
    counters.add(spec, records.count(category));
  };
  add(kineto::kCpuOps, KinetoCategory::kCpuOp);
  add(kineto::kPythonFunctions, KinetoCategory::kPythonFunction);
  add(kineto::kFlows, KinetoCategory::kFlow);
  add(kineto::kGpuAnnotations, KinetoCategory::kGpuAnnotation);
  add(kineto::kInternalRows, KinetoCategory::kTraceSpan);
  add(kineto::kInternalRows, KinetoCategory::kProfilerInternal);
  counters.add(kineto::kInternalRows,
               records.count(KinetoCategory::kOverhead) - records.trace.stalls.size());
  add(kineto::kForeignEvents, KinetoCategory::kForeign);
  add(kineto::kSyncRows, KinetoCategory::kSync);
}

/// Gives each stall the thread of the launch in which it begins, of several the one that began
/// last. A stall outside all of them is dropped.
void place_stalls(RankTrace& trace) {
  std::ranges::sort(trace.stalls, {}, [](const HostStall& stall) {
    return std::pair(stall.start, stall.duration);
  });
  const auto same = [](const HostStall& a, const HostStall& b) { return a.duration == b.duration; };
  trace.counters.add(kineto::kDuplicates, remove_duplicates(trace.stalls, same));
  // By thread, its launch that ends last so far.
  std::vector<const HostCall*> latest(trace.threads.size());
  auto call = trace.host_calls.begin();
  std::vector<HostStall> placed;
  for (HostStall& stall : trace.stalls) {
    for (; call != trace.host_calls.end() && call->start <= stall.start; ++call) {
      const HostCall*& last = latest[call->thread.index()];
      if (is_launch(call->kind) && (last == nullptr || call->end() > last->end())) last = &*call;
    }
    const HostCall* holder = nullptr;
    for (const HostCall* last : latest) {
      if (last == nullptr || last->end() <= stall.start) continue;
      if (holder == nullptr || last->start > holder->start) holder = last;
    }
    if (holder == nullptr) continue;
    stall.thread = holder->thread;
    placed.push_back(stall);
  }
  trace.counters.add(kineto::kInternalRows, trace.stalls.size() - placed.size());
  trace.stalls = std::move(placed);
}

/// Moves the calls into the trace. Memory is given back at once: here an import has its peak.
void move_calls(KinetoRecords& records, RankTrace& trace) {
  trace.host_calls.assign(records.calls.begin(), records.calls.end());
  records.calls = std::vector<PendingCall>();  // {} would keep the memory
}

/// The same for operations; returns collectives in the order of their kernels.
std::vector<PendingCollective> move_ops(KinetoRecords& records, RankTrace& trace) {
  std::vector<PendingCollective> collectives;
  trace.device_ops.reserve(records.ops.size());
  for (DeviceOp op : records.ops) {
    if (op.launch != kNone) op.correlation = trace.host_calls[op.launch].correlation;
    if (op.collective != kNone) {
      collectives.push_back(std::move(records.collectives[op.collective]));
      op.collective = static_cast<std::uint32_t>(collectives.size() - 1);
    }
    trace.device_ops.push_back(op);
  }
  records.ops = std::vector<PendingOp>();
  return collectives;
}

/// The profiler's own steps are the iterations; what users call so lies within them.
void keep_profiler_steps(RankTrace& trace) {
  const auto is_step = [&](const Marker& marker) {
    return is_profiler_step(trace.names[marker.name]);
  };
  if (std::ranges::none_of(trace.markers, is_step)) return;
  for (Marker& marker : trace.markers) {
    if (marker.kind != MarkerKind::kIteration || is_step(marker)) continue;
    marker.kind = MarkerKind::kUser;
    marker.number = -1;
  }
}

/// HIP's extension takes the grid in work-items, and the profilers write what it was given
/// (kineto, RocprofLogger.cpp: globalWorkSizeX).
bool counts_work_items(std::string_view call) {
  return call == "hipExtModuleLaunchKernel" || call == "hipHccModuleLaunchKernel";
}

/// AMD's profilers write a launch's shape with the call; those before 2024 did not repeat it with
/// the kernel.
void complete_shapes(KinetoRecords& records) {
  RankTrace& trace = records.trace;
  for (DeviceOp& op : records.ops) {
    if (!has_shape(op)) continue;
    const PendingCall* launch = op.launch == kNone ? nullptr : &records.calls[op.launch];
    if (!has_known_shape(trace, op) && launch && launch->shape) op.shape = *launch->shape;
    if (!has_known_shape(trace, op)) {
      trace.counters.add(kineto::kBadShape);
    } else if (launch && counts_work_items(trace.names[launch->name])) {
      LaunchShape shape = trace.shapes[op.shape];
      for (std::size_t i = 0; i < 3; ++i) shape.grid[i] = divide_up(shape.grid[i], shape.block[i]);
      op.shape = trace.shapes.intern(shape);
    }
  }
}

}  // namespace

std::vector<RankTrace> join_records(KinetoRecords records, const KinetoMetadata& metadata) {
  CounterSet& counters = records.trace.counters;
  shift_all(records, Duration{metadata.base_ns});
  sort_records(records);
  count_skipped(records);
  counters.add(kineto::kMicroseconds, records.any_fraction ? 0 : 1);
  counters.add(kineto::kUnitDoubtful, !records.any_fraction && launches_last_long(records) ? 1 : 0);
  counters.add(kineto::kDuplicates, remove_duplicates(records.calls, same_call));
  const CallIndex index(records.calls);
  counters.add(kineto::kDuplicates, remove_duplicate_ops(records, index));

  const LaunchCounts counts = link_launches(index, records.ops, records.calls);
  counters.add(kineto::kOrphanOps, counts.orphans);
  counters.add(kineto::kEarlyOps, counts.early);
  counters.add(kineto::kGraphOps, counts.of_graphs);
  counters.add(kineto::kIdleLaunches, counts.idle);
  complete_shapes(records);
  keep_profiler_steps(records.trace);
  resolve_pointers(records);

  // The records and the index keep the file's correlations: synchronisation rows refer to them.
  RankTrace trace = std::move(records.trace);
  move_calls(records, trace);
  trace.counters.add(kineto::kRenumbered, index.renumber(trace.host_calls));
  std::vector<PendingCollective> collectives = move_ops(records, trace);
  apply_sync_rows(records, index, trace);
  name_threads(records, trace);
  complete_collectives(collectives, std::move(records.announced), metadata, trace);
  drop_impossible_ops(trace);
  place_stalls(trace);
  std::vector<RankTrace> ranks = split_by_device(std::move(trace));
  for (RankTrace& rank : ranks) {
    number_by_use(rank);
    describe_device(metadata, rank);
    count_missing_shapes(rank);
  }
  return ranks;
}

}  // namespace bubblesim::traces
