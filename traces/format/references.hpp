// Tracks which records of a table were read, and repairs ids of missing records.
//
// A chunk gives the position of its records in their table, so that the ids in other chunks keep
// their meaning if a chunk is lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/counters.hpp"
#include "traces/launch_shapes.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format {

/// The records of one table of one rank that were read, by their position in the written table.
class TableExtents {
 public:
  /// Positions must not go back: `first` >= end().
  void add(std::uint64_t first, std::uint32_t count);
  /// One past the last position read.
  [[nodiscard]] std::uint64_t end() const;
  [[nodiscard]] std::uint64_t loaded() const { return loaded_; }
  /// Whether every record below position `used` was read, so that its index equals its position.
  [[nodiscard]] bool covers(std::uint64_t used) const;
  /// The index, among the records read, of the record written at `position`.
  [[nodiscard]] std::optional<std::uint32_t> place(std::uint64_t position) const;

 private:
  struct Extent {
    std::uint64_t first;
    std::uint64_t count;
    std::uint64_t base;
  };
  std::vector<Extent> extents_;
  std::uint64_t loaded_ = 0;
};

/// The ids in records: for each table, one past the greatest. They are collected during decoding,
/// while records are in the cache: a separate pass took a tenth of the time to read a trace.
struct UsedIds {
  struct Extent {
    std::uint64_t end = 0;
    void add(std::uint32_t id) { end = std::max(end, std::uint64_t{id} + 1); }
    void add_index(std::uint32_t index) {
      if (index != kNone) add(index);
    }
  };
  Extent names, shapes, threads, streams, host_calls, device_ops, collectives;

  void add(const HostCall& call) {
    names.add(call.name.value);
    threads.add(call.thread.value);
    streams.add_index(call.stream);
  }
  void add(const DeviceOp& op) {
    names.add(op.name.value);
    streams.add(op.stream.value);
    if (has_shape(op)) shapes.add(op.shape.value);
    host_calls.add_index(op.launch);
    collectives.add_index(op.collective);
  }
  void add(const Edge& edge) {
    device_ops.add(edge.before.value);
    device_ops.add(edge.after.value);
  }
  void add(const Marker& marker) {
    names.add(marker.name.value);
    threads.add(marker.thread.value);
  }
  void add(const CollectiveNote& note) {
    threads.add(note.thread.value);
    collectives.add_index(note.collective);
  }
  void add(const Collective& item) { names.add(item.group.value); }
  void add(const HostStall& stall) { threads.add(stall.thread.value); }
  void add(const SyncRecord& sync) { streams.add_index(sync.stream); }
  /// Other records have no ids.
  template <class Record>
  void add(const Record&) {}
  void merge(const UsedIds& other);
};

/// The tables of one rank that records refer to.
struct ReferredTables {
  TableExtents names, shapes, threads, streams, host_calls, device_ops, collectives;
  std::vector<NameId> name_ids;    ///< of each name read; equal texts share an id
  std::vector<ShapeId> shape_ids;  ///< of each shape read; equal shapes share an id
  UsedIds used;
};

/// Makes every id of `trace` refer to an existing record. If records are missing, an id becomes the
/// new index of its record; the id of a missing record becomes that of a stand-in, or none. Counts
/// the replaced ids. `tables.used` covers all ids of `trace`.
void resolve_references(RankTrace& trace, const ReferredTables& tables, CounterSet& counters);

}  // namespace bubblesim::traces::format
