// Which records of a table were read, and what became of ids that point at those that were not.
//
// A chunk says where its records stand in their table, so the ids in other chunks stay
// meaningful when a chunk between is lost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/counters.hpp"
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
  /// Is every position below `used` there, where it was written?
  [[nodiscard]] bool covers(std::uint64_t used) const;
  /// Where the record written at `position` stands among those read.
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

/// The tables of one rank that records refer to.
struct RankTables {
  TableExtents names, shapes, threads, streams, host_calls, device_ops, collectives;
  std::vector<NameId> name_ids;    ///< of each name read; equal texts share an id
  std::vector<ShapeId> shape_ids;  ///< of each shape read; equal shapes share an id
};

/// Makes every id of `trace` point at a record that exists: unchanged if nothing is missing, else
/// moved to where its record now stands, or to a stand-in, or to none. Counts what it replaced.
void resolve_references(RankTrace& trace, const RankTables& tables, CounterSet& counters);

}  // namespace bubblesim::traces::format
