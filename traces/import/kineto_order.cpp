#include "traces/import/kineto_order.hpp"

#include <tuple>
#include <utility>
#include <vector>

#include "traces/import/kineto_counters.hpp"
#include "traces/join/sort_stably.hpp"

namespace bubblesim::traces {
namespace {

/// What decides between records of the same time. Ids do not: they follow the order of events.
class Ties {
 public:
  explicit Ties(const KinetoRecords& records) : records_(records) {
    threads_.resize(records.thread_ids.size());
    std::uint32_t place = 0;
    for (const auto& [key, id] : records.thread_ids) threads_[id.index()] = place++;
  }

  [[nodiscard]] bool earlier(const PendingOp& a, const PendingOp& b) const {
    if (a.op.start != b.op.start) return a.op.start < b.op.start;
    return key(a) < key(b);
  }
  [[nodiscard]] bool earlier(const PendingCall& a, const PendingCall& b) const {
    if (a.call.start != b.call.start) return a.call.start < b.call.start;
    return key(a) < key(b);
  }
  [[nodiscard]] bool earlier(const Marker& a, const Marker& b) const {
    if (a.start != b.start) return a.start < b.start;
    return key(a) < key(b);
  }

 private:
  [[nodiscard]] const std::string& name(NameId id) const { return records_.trace.names[id]; }

  [[nodiscard]] std::tuple<std::uint64_t, std::uint32_t, std::uint64_t, std::uint64_t, Duration,
                           const std::string&, LaunchShape, std::uint64_t>
  key(const PendingOp& entry) const {
    const DeviceOp& op = entry.op;
    const bool shaped = op.kind == DeviceOpKind::kKernel || op.kind == DeviceOpKind::kCollective;
    return {op.correlation, entry.device, records_.trace.streams[op.stream.index()].system_id,
            entry.graph_node, op.duration, name(op.name),
            shaped ? records_.trace.shapes[op.shape] : LaunchShape{}, op.bytes};
  }
  [[nodiscard]] std::tuple<Duration, std::uint64_t, std::uint32_t, const std::string&,
                           std::uint64_t>
  key(const PendingCall& entry) const {
    const HostCall& call = entry.call;
    return {-call.duration, call.correlation, threads_[call.thread.index()], name(call.name),
            entry.stream_pointer};
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
    if (op.kind == DeviceOpKind::kKernel || op.kind == DeviceOpKind::kCollective) {
      shapes.use(op.shape);
    }
  }
  ShapeTable<LaunchShape> table;
  for (const std::uint32_t old : shapes.used()) table.intern(trace.shapes[ShapeId{old}]);
  trace.shapes = std::move(table);
}

}  // namespace

void sort_records(KinetoRecords& records) {
  std::uint64_t inversions = 0;
  for (std::size_t i = 1; i < records.ops.size(); ++i) {
    inversions += records.ops[i].op.start < records.ops[i - 1].op.start ? 1 : 0;
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

}  // namespace bubblesim::traces
