// The tables of a results store, as data: what creates them, checks them and fills them.
// OUTPUTS.md, "Results store", documents each; a test holds the two together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/store/sql_database.hpp"

namespace bubblesim::store {

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
