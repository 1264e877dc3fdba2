// The tables of a results store, as data, by which they are created, checked and filled.
// OUTPUTS.md, "Results store", documents each; a test compares the two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/store/sql_database.hpp"

namespace bubblesim::store {

// A run's index and settings in one of its sweeps. A run is stored once; the line in `runs` is that
// of the sweep that stored it (its first), every other sweep has a line in `memberships`. A failed
// run also has one for its first sweep, which is kept when another sweep's run replaces the
// failure.

/// Refers to sweep and run. It uses the run's key, index, point, repetition and settings.
struct Membership {
  std::string_view sweep;
  const PlannedRun* run = nullptr;
};

/// `[["/pointer","value as JSON text"],...]`, in the order of the axes.
[[nodiscard]] std::string settings_text_of(const std::vector<Setting>& settings);

/// Nothing: the text is not a list of settings.
[[nodiscard]] std::optional<std::vector<Setting>> parse_settings(const std::string& text);

/// Memberships whose run is stored under another sweep.
[[nodiscard]] Result<std::vector<Membership>> stored_elsewhere(
    SqlDatabase& database, const std::vector<Membership>& members);

/// Call inside an open transaction; an existing line stays.
[[nodiscard]] Result<void> write_memberships(SqlDatabase& database,
                                             std::vector<Membership> members);

enum class StoreType : std::uint8_t { kRowId, kInteger, kNumber, kText, kBytes };

struct StoreColumn {
  std::string name;
  StoreType type = StoreType::kText;
  bool required = true;  ///< never absent
};

struct StoreTable {
  std::string name;
  std::vector<StoreColumn> columns;
  std::vector<std::string> key;      ///< primary key; empty: the row id
  bool of_run = true;                ///< first column refers to runs.run
  int since = 1;                     ///< first schema version with this table
};

/// All tables, in the order in which they are made. The columns of `rows` end with
/// observe::result_columns().
[[nodiscard]] const std::vector<StoreTable>& store_tables();

/// The table of this name. Precondition: there is one.
[[nodiscard]] const StoreTable& store_table(std::string_view name);

/// `INSERT INTO table(...) VALUES ($1, ...)`, of all columns except a row id.
[[nodiscard]] std::string insert_statement(const StoreTable& table);

/// Creates missing tables (kWrite); else checks that they are a store that this program can read.
/// kWrite adds new columns of `rows` to an older store, and raises the store to this version;
/// otherwise an older store is read as it is.
[[nodiscard]] Result<void> prepare_schema(SqlDatabase& database, StoreAccess access);

/// Names of the table's columns in the database.
[[nodiscard]] Result<std::vector<std::string>> columns_of(SqlDatabase& database,
                                                          const std::string& table);

}  // namespace bubblesim::store
