// Reads runs from the tables a page at a time, so that memory does not grow with the store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
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

/// Runs that may pass the filter (sweeps and settings are checked, rows are not), as their sweep
/// has them, in the order of sweep, index, key. Reads one state of the store, without records added
/// meanwhile. A run whose digest differs from the stored one ends the walk. `visit` may take the
/// record.
[[nodiscard]] Result<void> read_records(SqlDatabase& database, const RowFilter& filter,
                                        RunsOf runs_of, const StoreShape& shape,
                                        const std::function<void(RunRecord&)>& visit);

/// Whether a row has one of the filter's policies and one of its fillers.
[[nodiscard]] bool passes(const observe::ResultRow& row, const RowFilter& filter);

}  // namespace bubblesim::store
