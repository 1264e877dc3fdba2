// The part of SQL that the store needs, the same for SQLite and PostgreSQL: prepared statements
// with $1, $2, ... (in the order of their first appearance), transactions, rows handed to a
// visitor. SqlDialect holds the differences between the two.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::store {

/// Refers to texts and bytes, which must live until the statement has run.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string_view,
                              std::span<const std::uint8_t>>;

/// Values for one statement, which runs once for each `width` of them.
struct SqlParameters {
  std::size_t width = 0;
  std::vector<SqlValue> values;

  [[nodiscard]] std::size_t sets() const { return width == 0 ? 1 : values.size() / width; }
};

/// A row of an answer; columns from 0. Valid during the visit. An absent value reads as 0 or "".
class SqlRow {
 public:
  virtual ~SqlRow() = default;
  [[nodiscard]] virtual bool absent(int column) const = 0;
  [[nodiscard]] virtual std::int64_t integer(int column) const = 0;
  [[nodiscard]] virtual double number(int column) const = 0;
  [[nodiscard]] virtual std::string text(int column) const = 0;
  [[nodiscard]] virtual std::vector<std::uint8_t> bytes(int column) const = 0;
};

/// `set`: the index of the parameters that the row answers.
using SqlVisitor = std::function<void(std::size_t set, const SqlRow& row)>;

struct SqlDialect {
  std::string_view row_id;        ///< type of a primary key that the database counts
  std::string_view integer;
  std::string_view number;
  std::string_view text;          ///< ordered by bytes
  std::string_view bytes;
  std::string_view table_end;     ///< after the closing bracket of every table
  std::string_view keyed_table_end;  ///< the same, for a table stored by its primary key
  std::string_view has_table;     ///< query: one row if table $1 exists
  std::string_view columns_of;    ///< query: names of the columns of table $1
  std::string_view lock_schema;   ///< statement before tables are made; empty: not needed
};

enum class SqlTransaction : std::uint8_t { kRead, kWrite };

class SqlDatabase {
 public:
  virtual ~SqlDatabase() = default;

  [[nodiscard]] virtual const SqlDialect& dialect() const = 0;
  /// The database's name in messages: the path, or the connection string without its password.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Statements without parameters or answers, separated by ";".
  [[nodiscard]] virtual Result<void> execute(const std::string& sql) = 0;
  /// A statement is prepared once, and kept by its text.
  [[nodiscard]] virtual Result<void> run(const std::string& sql, const SqlParameters& parameters,
                                         const SqlVisitor& visit) = 0;
  /// Runs a query once, without preparing it.
  [[nodiscard]] virtual Result<void> query(const std::string& sql,
                                           const std::function<void(const SqlRow&)>& visit) = 0;
  /// kRead: sees one state of the database until its end. kWrite: waits for other writers.
  [[nodiscard]] virtual Result<void> begin(SqlTransaction kind) = 0;
  [[nodiscard]] virtual Result<void> commit() = 0;
  /// Does nothing if no transaction is open.
  virtual void roll_back() noexcept = 0;
  /// Whether the file was deleted, moved or replaced since it was opened; false for a server.
  [[nodiscard]] virtual bool is_gone() const { return false; }
  /// Runs the database's own check of all its contents; fault: damage.
  [[nodiscard]] virtual Result<void> check() = 0;
};

/// Does `work`, which gives a Result, in a transaction: after a fault nothing of it stays.
template <class Work>
[[nodiscard]] auto in_transaction(SqlDatabase& database, SqlTransaction kind, const Work& work)
    -> std::invoke_result_t<const Work&> {
  BUBBLESIM_RETURN_IF_ERROR(database.begin(kind));
  auto result = work();
  if (result) {
    if (auto end = database.commit(); !end) result = tl::make_unexpected(std::move(end).error());
  }
  if (!result) database.roll_back();
  return result;
}

/// An SQLite file; faults as open_store().
[[nodiscard]] Result<std::unique_ptr<SqlDatabase>> open_sqlite(const std::string& path,
                                                               StoreAccess access);

/// Whether the file has the mark of a bubblesim store, even if it is damaged or of another version.
[[nodiscard]] bool is_marked_sqlite(const std::string& path);

/// A PostgreSQL database. A build without libpq refuses, and says so.
[[nodiscard]] Result<std::unique_ptr<SqlDatabase>> open_postgres(const std::string& connection,
                                                                 StoreAccess access);

}  // namespace bubblesim::store
