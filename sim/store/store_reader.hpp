// Reads runs out of the tables a page at a time: memory does not grow with the store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/store/results_store.hpp"
#include "sim/store/sql_database.hpp"

namespace bubblesim::store {

/// What an older store may lack.
struct StoreShape {
  std::vector<std::string> row_columns;  ///< that the table `rows` has
  bool memberships = true;               ///< since version 2
};

/// Under which sweeps a run comes.
enum class RunsOf : std::uint8_t {
  kEachSweep,
  kFirstSweep,  ///< that stored it
};

/// A run as stored, with the digest that it was stored with.
struct StoredRecord {
  RunRecord record;
  std::int64_t digest = 0;
  /// The sweep that the record was read for, if another one stored it: its name, and the run's
  /// index, point, repetition and settings in it.
  std::optional<std::pair<std::string, PlannedRun>> member;
  /// Puts that sweep's place into the record, whose digest no longer matches then.
  void relabel();
};

/// Runs that may pass the filter (sweeps and settings are checked, rows are not), in the order of
/// sweep, index, key. One state of the store: what others add meanwhile is not seen. `visit` ends
/// the walk with a fault, and so does a run that has another digest than it was stored with.
[[nodiscard]] Result<void> read_records(
    SqlDatabase& database, const RowFilter& filter, RunsOf runs_of, const StoreShape& shape,
    const std::function<Result<void>(StoredRecord&)>& visit);

/// Does a row have one of the filter's policies and fillers?
[[nodiscard]] bool passes(const observe::ResultRow& row, const RowFilter& filter);

}  // namespace bubblesim::store
