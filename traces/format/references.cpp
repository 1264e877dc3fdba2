#include "traces/format/references.hpp"

#include <map>
#include <string_view>

#include "sim/base/check.hpp"
#include "traces/format/counters.hpp"

namespace bubblesim::traces::format {
namespace {

constexpr std::string_view kLostName = "(lost)";

/// Are ids those of the file, that is, did interning find no duplicate?
template <class Id>
bool in_order(const std::vector<Id>& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].index() != i) return false;
  }
  return true;
}

/// Moves ids of an interned table; all that are lost share one stand-in.
template <class Id>
class InternedFix {
 public:
  InternedFix(const TableExtents& table, const std::vector<Id>& ids)
      : table_(table), ids_(ids), in_order_(in_order(ids)) {}

  [[nodiscard]] bool nothing_to_do(std::uint64_t used) const {
    return in_order_ && table_.covers(used);
  }
  void fix(Id& id, auto make_stand_in) {
    if (const auto place = table_.place(id.value)) {
      id = ids_[*place];
    } else {
      id = make_stand_in();
      ++lost_;
    }
  }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  const TableExtents& table_;
  const std::vector<Id>& ids_;
  bool in_order_;
  std::uint64_t lost_ = 0;
};

/// Moves ids of a table whose entries must stay apart: each lost one gets its own stand-in.
class DistinctFix {
 public:
  explicit DistinctFix(const TableExtents& table) : table_(table) {}

  void fix(std::uint32_t& id, auto& entries, const auto& stand_in) {
    if (const auto place = table_.place(id)) {
      id = *place;
      return;
    }
    const auto [found, fresh] =
        stand_ins_.try_emplace(id, static_cast<std::uint32_t>(entries.size()));
    if (fresh) entries.push_back(stand_in);
    id = found->second;
  }
  [[nodiscard]] std::uint64_t lost() const { return stand_ins_.size(); }

 private:
  const TableExtents& table_;
  std::map<std::uint32_t, std::uint32_t> stand_ins_;
};

void fix_names(RankTrace& trace, const ReferredTables& tables, std::uint64_t used,
               CounterSet& counters) {
  InternedFix<NameId> fixer(tables.names, tables.name_ids);
  if (fixer.nothing_to_do(used)) return;
  const auto stand_in = [&trace] { return trace.names.intern(kLostName); };
  for (HostCall& call : trace.host_calls) fixer.fix(call.name, stand_in);
  for (DeviceOp& op : trace.device_ops) fixer.fix(op.name, stand_in);
  for (Collective& item : trace.collectives) fixer.fix(item.group, stand_in);
  for (Marker& marker : trace.markers) fixer.fix(marker.name, stand_in);
  counters.add(kNamesLost, fixer.lost());
}

void fix_shapes(RankTrace& trace, const ReferredTables& tables, std::uint64_t used,
                CounterSet& counters) {
  InternedFix<ShapeId> fixer(tables.shapes, tables.shape_ids);
  if (fixer.nothing_to_do(used)) return;
  const auto stand_in = [&trace] { return trace.shapes.intern(kUnknownShape); };
  for (DeviceOp& op : trace.device_ops) {
    if (has_shape(op)) fixer.fix(op.shape, stand_in);
  }
  counters.add(kShapesLost, fixer.lost());
}

void fix_threads(RankTrace& trace, const TableExtents& table, std::uint64_t used,
                 CounterSet& counters) {
  if (table.covers(used)) return;
  DistinctFix fixer(table);
  const HostThread stand_in{0, std::string(kLostName)};
  for (HostCall& call : trace.host_calls) fixer.fix(call.thread.value, trace.threads, stand_in);
  for (Marker& marker : trace.markers) fixer.fix(marker.thread.value, trace.threads, stand_in);
  for (HostStall& stall : trace.stalls) fixer.fix(stall.thread.value, trace.threads, stand_in);
  for (CollectiveNote& note : trace.notes) fixer.fix(note.thread.value, trace.threads, stand_in);
  counters.add(kThreadsLost, fixer.lost());
}

void fix_streams(RankTrace& trace, const TableExtents& table, std::uint64_t used,
                 CounterSet& counters) {
  if (table.covers(used)) return;
  DistinctFix fixer(table);
  for (HostCall& call : trace.host_calls) {
    if (call.stream != kNone) fixer.fix(call.stream, trace.streams, Stream{});
  }
  for (DeviceOp& op : trace.device_ops) fixer.fix(op.stream.value, trace.streams, Stream{});
  for (SyncRecord& sync : trace.syncs) {
    if (sync.stream != kNone) fixer.fix(sync.stream, trace.streams, Stream{});
  }
  counters.add(kStreamsLost, fixer.lost());
}

std::uint64_t fix_index(const TableExtents& table, std::uint32_t& index) {
  if (index == kNone) return 0;
  index = table.place(index).value_or(kNone);
  return index == kNone ? 1 : 0;
}

void fix_launches(RankTrace& trace, const TableExtents& table, std::uint64_t used,
                  CounterSet& counters) {
  if (table.covers(used)) return;
  std::uint64_t lost = 0;
  for (DeviceOp& op : trace.device_ops) lost += fix_index(table, op.launch);
  counters.add(kLaunchesLost, lost);
}

void fix_collectives(RankTrace& trace, const TableExtents& table, std::uint64_t used,
                     CounterSet& counters) {
  if (table.covers(used)) return;
  std::uint64_t lost = 0;
  for (DeviceOp& op : trace.device_ops) lost += fix_index(table, op.collective);
  for (CollectiveNote& note : trace.notes) lost += fix_index(table, note.collective);
  counters.add(kCollectivesLost, lost);
}

void fix_edges(RankTrace& trace, const TableExtents& table, std::uint64_t used,
               CounterSet& counters) {
  if (table.covers(used)) return;
  const std::size_t dropped = std::erase_if(trace.edges, [&table](Edge& edge) {
    const auto before = table.place(edge.before.value);
    const auto after = table.place(edge.after.value);
    if (!before || !after) return true;
    edge.before.value = *before;
    edge.after.value = *after;
    return false;
  });
  counters.add(kEdgesLost, dropped);
}

}  // namespace

void TableExtents::add(std::uint64_t first, std::uint32_t count) {
  BUBBLESIM_DCHECK(first >= end(), "positions go back");
  if (!extents_.empty() && first == end()) {
    extents_.back().count += count;
  } else {
    extents_.push_back({first, count, loaded_});
  }
  loaded_ += count;
}

std::uint64_t TableExtents::end() const {
  return extents_.empty() ? 0 : extents_.back().first + extents_.back().count;
}

bool TableExtents::covers(std::uint64_t used) const {
  if (extents_.empty()) return used == 0;
  return extents_.front().first == 0 && extents_.front().count >= used;
}

std::optional<std::uint32_t> TableExtents::place(std::uint64_t position) const {
  const auto after = std::ranges::upper_bound(extents_, position, {}, &Extent::first);
  if (after == extents_.begin()) return std::nullopt;
  const Extent& extent = *(after - 1);
  if (position - extent.first >= extent.count) return std::nullopt;
  return static_cast<std::uint32_t>(extent.base + (position - extent.first));
}

void UsedIds::merge(const UsedIds& other) {
  for (Extent UsedIds::*extent : {&UsedIds::names, &UsedIds::shapes, &UsedIds::threads,
                                  &UsedIds::streams, &UsedIds::host_calls, &UsedIds::device_ops,
                                  &UsedIds::collectives}) {
    (this->*extent).end = std::max((this->*extent).end, (other.*extent).end);
  }
}

void resolve_references(RankTrace& trace, const ReferredTables& tables, CounterSet& counters) {
  const UsedIds& used = tables.used;
  fix_names(trace, tables, used.names.end, counters);
  fix_shapes(trace, tables, used.shapes.end, counters);
  fix_threads(trace, tables.threads, used.threads.end, counters);
  fix_streams(trace, tables.streams, used.streams.end, counters);
  fix_launches(trace, tables.host_calls, used.host_calls.end, counters);
  fix_collectives(trace, tables.collectives, used.collectives.end, counters);
  fix_edges(trace, tables.device_ops, used.device_ops.end, counters);
}

}  // namespace bubblesim::traces::format
