// Reads runs from the tables a page at a time, so that memory does not grow with the store.
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

/// The parts of the tables that an older store may lack.
struct StoreShape {
  std::vector<std::string> row_columns;  ///< the columns of the table `rows`
  bool memberships = true;               ///< it has memberships, as stores have since version 2
};

/// How often a run is visited if several sweeps share it.
enum class RunsOf : std::uint8_t {
  kEachSweep,   ///< once for each of its sweeps
  kFirstSweep,  ///< once, for the sweep that stored it
};

/// A run as stored, with its stored digest.
struct StoredRecord {
  RunRecord record;
  std::int64_t digest = 0;
  /// If another sweep stored the record, the sweep that it was read for: its name, and the run's
  /// index, point, repetition and settings in it.
  std::optional<std::pair<std::string, PlannedRun>> member;
  /// Replaces the record's sweep by `member`; `digest` no longer matches the record then.
  void relabel();
};

/// Runs that may pass the filter (sweeps and settings are checked, rows are not), in the order of
/// sweep, index, key. Reads one state of the store, without records added meanwhile. A fault of
/// `visit`, or a run whose digest differs from the stored one, ends the walk.
[[nodiscard]] Result<void> read_records(
    SqlDatabase& database, const RowFilter& filter, RunsOf runs_of, const StoreShape& shape,
    const std::function<Result<void>(StoredRecord&)>& visit);

/// Whether a row has one of the filter's policies and one of its fillers.
[[nodiscard]] bool passes(const observe::ResultRow& row, const RowFilter& filter);

}  // namespace bubblesim::store
