// The tables of a results store, as data: what creates them, checks them and fills them.
// OUTPUTS.md, "Results store", documents each; a test holds the two together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/store/sql_database.hpp"

namespace bubblesim::store {

// What a sweep says of a run that a store may have under another sweep's name: its own place in
// the plan and its own settings. A run is stored once; the line in `runs` is that of the sweep
// that stored it (its first), every other sweep has a line in `memberships`. A failure has one of
// its first sweep too, so that nothing is lost when another sweep's run takes its place.

/// Borrows both. It uses the run's key, index, point, repetition and settings.
struct Membership {
  std::string_view sweep;
  const PlannedRun* run = nullptr;
};

/// `[["/pointer","value as JSON text"],...]`, in the order of the axes.
[[nodiscard]] std::string settings_text_of(const std::vector<Setting>& settings);

/// Nothing: the text is no such list.
[[nodiscard]] std::optional<std::vector<Setting>> parse_settings(const std::string& text);

/// Memberships whose run is stored under another sweep.
[[nodiscard]] Result<std::vector<Membership>> stored_elsewhere(
    SqlDatabase& database, const std::vector<Membership>& members);

/// Inside a transaction that the caller opened; one that is there already stays.
[[nodiscard]] Result<void> write_memberships(SqlDatabase& database,
                                             std::vector<Membership> members);

/// The lines of failures that a store of version 1 lacks.
[[nodiscard]] Result<void> write_memberships_of_failures(SqlDatabase& database);

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
  int since = 1;                     ///< first schema version that has it
};

/// All tables, in the order in which they are made. The columns of `rows` end with
/// observe::result_columns().
[[nodiscard]] const std::vector<StoreTable>& store_tables();

/// The named table; it must be one.
[[nodiscard]] const StoreTable& store_table(std::string_view name);

/// `INSERT INTO table(...) VALUES ($1, ...)`, of all columns but a row id.
[[nodiscard]] std::string insert_statement(const StoreTable& table);

/// Makes the tables where there are none (kWrite); else checks that they are a store that this
/// program can read. Columns that a newer version of this program added to `rows` are added to an
/// older store by kWrite. A store of an older version is read as it is, and made one of this
/// version by kWrite.
[[nodiscard]] Result<void> prepare_schema(SqlDatabase& database, StoreAccess access);

/// Names of the columns of `rows` that the database has.
[[nodiscard]] Result<std::vector<std::string>> columns_of(SqlDatabase& database,
                                                          const std::string& table);

}  // namespace bubblesim::store
