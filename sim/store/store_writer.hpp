// Puts records into the tables, inside a transaction that the caller opened.
#pragma once

#include <span>

#include "sim/store/run_record.hpp"
#include "sim/store/sql_database.hpp"

namespace bubblesim::store {

/// Faults of a record itself: nothing of it may be stored.
[[nodiscard]] Result<void> check_record(const RunRecord& record);

/// Records as add() of ResultsStore takes them, checked. Returns how many were stored.
[[nodiscard]] Result<std::size_t> write_records(SqlDatabase& database,
                                                std::span<const RunRecord> records);

}  // namespace bubblesim::store
