// Read-only access to an untrusted SQLite database: its ordinary tables, their columns, their rows
// in stored order.
//
// Bounds: pages of a damaged or hostile file may refer to one another in circles, so that rows and
// bytes of text are limited by the file's size. Views, virtual tables, triggers and journals are
// not used. One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace bubblesim::traces::nsys {

/// The first bytes of every SQLite database file.
inline constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};

/// Names of columns.
using Columns = std::initializer_list<std::string_view>;

class Database {
 public:
  /// A plain file is read in place; gzip, by content, is unpacked in memory.
  [[nodiscard]] static Result<std::unique_ptr<Database>> open(const std::filesystem::path& path,
                                                              std::uint64_t max_unpacked_bytes);
  [[nodiscard]] static Result<std::unique_ptr<Database>> from_memory(std::string bytes,
                                                                     const std::string& source);

  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  /// Names of ordinary tables, in the order of the schema.
  [[nodiscard]] const std::vector<std::string>& tables() const { return tables_; }
  /// Ignores case, as SQL does.
  [[nodiscard]] bool has_table(std::string_view table) const;
  /// Columns of a table, as stored; empty if there is no such table.
  [[nodiscard]] std::vector<std::string> columns(std::string_view table) const;
  /// The largest row number, an estimate of the number of rows. 0: unknown.
  [[nodiscard]] std::uint64_t estimated_rows(std::string_view table) const;
  /// Whether the column is the table's integer primary key, which finds a row without a scan.
  [[nodiscard]] bool is_row_key(std::string_view table, std::string_view column) const;

  /// The file, as the user named it.
  [[nodiscard]] const std::string& source() const { return source_; }
  /// Bytes of the database.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] bool gzip_damaged() const { return gzip_damaged_; }
  /// The first error that SQLite reported while reading; empty: none.
  [[nodiscard]] const std::string& damage() const { return damage_; }

 private:
  friend class Rows;
  Database(std::string source, std::uint64_t size) : source_(std::move(source)), size_(size) {}
  [[nodiscard]] std::string fault() const;
  void harden();
  [[nodiscard]] Result<void> list_tables();

  std::string source_;
  std::string memory_;  ///< the database, where it is not read in place
  sqlite3* handle_ = nullptr;
  std::uint64_t size_;
  bool gzip_damaged_ = false;
  std::vector<std::string> tables_;
  // What reading it uses up and finds.
  mutable std::string damage_;
  mutable std::uint64_t rows_left_ = 0;
  mutable std::uint64_t text_left_ = 0;
};

/// Reads the rows of a table once, with the named columns. Columns that the table lacks read as
/// absent values; a missing table has no rows. The database must outlive this object.
class Rows {
 public:
  Rows(const Database& database, std::string_view table, Columns columns);
  /// Reads single rows, found by the value of the table's key.
  static Rows by_key(const Database& database, std::string_view table, std::string_view key,
                     Columns columns);
  Rows(Rows&&) noexcept;
  ~Rows();

  /// by_key() only: the next call of next() reads the row of this key.
  void seek(std::int64_t key);
  /// Moves to the next row. False: the table's end, or damage.
  [[nodiscard]] bool next();
  [[nodiscard]] bool damaged() const { return damaged_; }
  /// Precondition: next() was true.
  [[nodiscard]] bool has(std::size_t column) const { return present_[column]; }

  /// Nothing if the value is of another type or absent.
  [[nodiscard]] std::optional<std::int64_t> integer(std::size_t column) const;
  /// Valid until the next call of next().
  [[nodiscard]] std::optional<std::string_view> text(std::size_t column) const;
  /// The bytes of a binary value or a text.
  [[nodiscard]] std::optional<std::string_view> bytes(std::size_t column) const;

 private:
  Rows(const Database& database, const std::string& table, Columns columns, std::string_view key);
  void prepare(const std::string& sql);
  void fail_with(std::string fault);

  const Database* database_;
  sqlite3_stmt* statement_ = nullptr;
  std::vector<bool> present_;
  bool damaged_ = false;
};

}  // namespace bubblesim::traces::nsys
