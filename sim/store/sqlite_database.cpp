// SQLite behind SqlDatabase. Write-ahead log, so that readers and one writer at a time work
// side by side and a killed program leaves the last commit; synchronous=NORMAL, so that the disk
// is waited for when the log is folded into the file, not at every commit: a power cut may take
// the newest commits, whole, and never damages the file (sqlite.org/pragma.html#pragma_synchronous,
// sqlite.org/wal.html).
#include <sqlite3.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "sim/base/input_file.hpp"
#include "sim/store/sql_database.hpp"

namespace bubblesim::store {
namespace {

namespace fs = std::filesystem;

constexpr int kBusyMilliseconds = 60'000;
/// Marks the file as ours: "BSIM".
constexpr std::int64_t kApplicationId = 0x4253494D;
/// How a file begins, and where its mark stands (sqlite.org/fileformat.html, 1.3).
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kMarkAt = 68;

constexpr SqlDialect kSqliteDialect{
    .row_id = "INTEGER PRIMARY KEY",
    .integer = "INTEGER",
    .number = "REAL",
    .text = "TEXT",
    .bytes = "BLOB",
    .table_end = "STRICT",
    .keyed_table_end = "STRICT, WITHOUT ROWID",
    .has_table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1",
    .columns_of = "SELECT name FROM pragma_table_info($1)",
    .lock_schema = "",  // a transaction that writes is alone
};

/// What a code means to the person who reads it, and what became of the data.
std::string meaning(int code) {
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return "the disk is full; what was stored before is kept, what was being added is not";
    case SQLITE_IOERR:
      return "reading or writing failed (disk full, file limit, or disk at fault); what was "
             "stored before is kept, what was being added is not";
    case SQLITE_READONLY: return "may not be written";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another program held it for more than " +
             std::to_string(kBusyMilliseconds / 1000) + " s";
    case SQLITE_NOTADB: return "is no results store: found no SQLite file";
    case SQLITE_CORRUPT:
      return "is damaged; what can be read of it: sqlite3 FILE .recover | sqlite3 NEW";
    case SQLITE_CANTOPEN: return "cannot be opened";
    case SQLITE_PERM:
    case SQLITE_AUTH: return "may not be used";
    case SQLITE_NOMEM: return "found no memory";
    default: return "SQLite refused";
  }
}

class SqliteRow final : public SqlRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  [[nodiscard]] bool absent(int column) const override {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }
  [[nodiscard]] std::int64_t integer(int column) const override {
    return sqlite3_column_int64(statement_, column);
  }
  [[nodiscard]] double number(int column) const override {
    return sqlite3_column_double(statement_, column);
  }
  [[nodiscard]] std::string text(int column) const override {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (text == nullptr) return {};
    return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }
  [[nodiscard]] std::vector<std::uint8_t> bytes(int column) const override {
    const auto* bytes = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_, column));
    if (bytes == nullptr) return {};
    return {bytes, bytes + sqlite3_column_bytes(statement_, column)};
  }

 private:
  sqlite3_stmt* statement_;
};

struct Bind {
  sqlite3_stmt* statement;
  int place;
  int operator()(std::monostate) const { return sqlite3_bind_null(statement, place); }
  int operator()(std::int64_t value) const {
    return sqlite3_bind_int64(statement, place, value);
  }
  int operator()(double value) const { return sqlite3_bind_double(statement, place, value); }
  int operator()(std::string_view text) const {
    const char* data = text.data() == nullptr ? "" : text.data();
    return sqlite3_bind_text64(statement, place, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  int operator()(std::span<const std::uint8_t> bytes) const {
    if (bytes.empty()) return sqlite3_bind_zeroblob(statement, place, 0);
    return sqlite3_bind_blob64(statement, place, bytes.data(), bytes.size(), SQLITE_STATIC);
  }
};

class SqliteDatabase final : public SqlDatabase {
 public:
  SqliteDatabase(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;
  ~SqliteDatabase() override {
    for (const auto& [text, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close_v2(handle_);
  }

  [[nodiscard]] const SqlDialect& dialect() const override { return kSqliteDialect; }
  [[nodiscard]] const std::string& name() const override { return path_; }

  [[nodiscard]] Result<void> execute(const std::string& sql) override {
    const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return fault(code);
    return {};
  }

  [[nodiscard]] Result<void> run(const std::string& sql, const SqlParameters& parameters,
                                 const SqlVisitor& visit) override {
    sqlite3_stmt*& statement = statements_[sql];
    if (statement == nullptr) {
      const int code = sqlite3_prepare_v3(handle_, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                          SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
      if (code != SQLITE_OK) return fault(code);
    }
    const std::size_t sets = parameters.sets();
    for (std::size_t set = 0; set < sets; ++set) {
      const int code = run_once(statement, parameters, set, visit);
      if (code != SQLITE_DONE) {
        auto result = fault(code);
        sqlite3_reset(statement);
        return result;
      }
      sqlite3_reset(statement);
    }
    sqlite3_clear_bindings(statement);
    return {};
  }

  [[nodiscard]] Result<void> query(const std::string& sql,
                                   const std::function<void(const SqlRow&)>& visit) override {
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v2(handle_, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                  &statement, nullptr);
    if (code == SQLITE_OK) {
      code = run_once(statement, {}, 0, [&](std::size_t, const SqlRow& row) { visit(row); });
    }
    Result<void> result;
    if (code != SQLITE_DONE) result = fault(code);
    sqlite3_finalize(statement);
    return result;
  }

  [[nodiscard]] bool is_gone() const override {
    int moved = 0;
    sqlite3_file_control(handle_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved != 0;
  }
  [[nodiscard]] Result<void> begin(SqlTransaction kind) override {
    if (kind == SqlTransaction::kWrite && is_gone()) {
      return fail(path_, {}, "was deleted, moved or replaced while it was in use");
    }
    return execute(kind == SqlTransaction::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
  }
  [[nodiscard]] Result<void> commit() override { return execute("COMMIT"); }
  void roll_back() noexcept override {
    if (sqlite3_get_autocommit(handle_) == 0) {
      sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }

  [[nodiscard]] Result<void> check() override {
    std::string found;
    BUBBLESIM_RETURN_IF_ERROR(query("PRAGMA integrity_check(3)", [&](const SqlRow& row) {
      if (row.text(0) != "ok") found += (found.empty() ? "" : "; ") + row.text(0);
    }));
    if (!found.empty()) return fail(path_, {}, meaning(SQLITE_CORRUPT) + " (" + found + ")");
    return {};
  }

  [[nodiscard]] Result<void> prepare_file(StoreAccess access) {
    sqlite3_busy_timeout(handle_, kBusyMilliseconds);
    sqlite3_extended_result_codes(handle_, 1);
    const bool read_only = sqlite3_db_readonly(handle_, "main") == 1;
    if (access == StoreAccess::kWrite && read_only) {
      return fail(path_, {}, meaning(SQLITE_READONLY));
    }
    // A hostile file runs nothing: no functions with side effects, no writable schema.
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    // In a transaction: another program may be making the store at the same instant.
    const bool write = access == StoreAccess::kWrite;
    BUBBLESIM_RETURN_IF_ERROR(
        in_transaction(*this, write ? SqlTransaction::kWrite : SqlTransaction::kRead,
                       [&] { return mark(access); }));
    if (!write) return execute("PRAGMA query_only = ON");
    BUBBLESIM_RETURN_IF_ERROR(switch_to_log());
    // The log is folded in at 16 MiB: pages that batches share are written once.
    return execute("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; "
                   "PRAGMA cell_size_check = ON; PRAGMA wal_autocheckpoint = 4096");
  }

 private:
  [[nodiscard]] tl::unexpected<Error> fault(int code) const {
    const std::string detail = sqlite3_errmsg(handle_);
    return fail(path_, {}, meaning(code) + " (" + detail + ")");
  }
  static int run_once(sqlite3_stmt* statement, const SqlParameters& parameters, std::size_t set,
                      const SqlVisitor& visit) {
    for (std::size_t i = 0; i < parameters.width; ++i) {
      const SqlValue& value = parameters.values[set * parameters.width + i];
      const int code = std::visit(Bind{statement, static_cast<int>(i) + 1}, value);
      if (code != SQLITE_OK) return code;
    }
    const SqliteRow row(statement);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      if (visit) visit(set, row);
    }
    return code;
  }
  [[nodiscard]] Result<std::int64_t> pragma(const std::string& name) {
    std::int64_t value = 0;
    BUBBLESIM_RETURN_IF_ERROR(
        query("PRAGMA " + name, [&](const SqlRow& row) { value = row.integer(0); }));
    return value;
  }
  /// Programs that open a new file at the same instant: the change of mode does not wait for a
  /// lock (sqlite.org/wal.html), so it is tried again.
  [[nodiscard]] Result<void> switch_to_log() {
    int code = SQLITE_OK;
    for (int attempt = 0; attempt < 200; ++attempt) {
      code = sqlite3_exec(handle_, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
      if ((code & 0xFF) != SQLITE_BUSY) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (code != SQLITE_OK) return fault(code);
    return {};
  }
  /// An empty file becomes ours; one that is not is refused.
  [[nodiscard]] Result<void> mark(StoreAccess access) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::int64_t id, pragma("application_id"));
    if (id == kApplicationId) return {};
    BUBBLESIM_ASSIGN_OR_RETURN(const std::int64_t schema, pragma("schema_version"));
    const bool empty = id == 0 && schema == 0;
    if (empty && access == StoreAccess::kWrite) {
      return execute("PRAGMA application_id = " + std::to_string(kApplicationId));
    }
    return fail(path_, {}, empty ? "is no results store: found an empty file"
                                 : "is no results store: found an SQLite file of another program");
  }

  sqlite3* handle_;
  std::string path_;
  std::map<std::string, sqlite3_stmt*> statements_;  // by their text
};

Result<std::unique_ptr<SqliteDatabase>> open_uri(const std::string& path, const std::string& query,
                                                 int flags, StoreAccess access) {
  sqlite3* handle = nullptr;
  const std::string uri = file_uri(path) + query;
  const int code = sqlite3_open_v2(uri.c_str(), &handle, flags | SQLITE_OPEN_URI, nullptr);
  auto database = std::make_unique<SqliteDatabase>(handle, path);
  if (code != SQLITE_OK) {
    const std::string detail = handle == nullptr ? "no memory" : sqlite3_errmsg(handle);
    return fail(path, {}, meaning(code) + " (" + detail + ")");
  }
  BUBBLESIM_RETURN_IF_ERROR(database->prepare_file(access));
  return database;
}

/// Whether everything is in the file itself, with nothing in a log beside it.
bool no_log_beside(const std::string& path) {
  std::error_code missing;
  const auto size = fs::file_size(path + "-wal", missing);
  return missing || size == 0;
}

}  // namespace

bool is_marked_sqlite(const std::string& path) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return false;
  std::array<char, kMarkAt + 4> header{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(header.data(), header.size())) return false;
  if (!std::string_view(header.data(), header.size()).starts_with(kMagic)) return false;
  std::int64_t mark = 0;  // the most significant byte comes first
  for (std::size_t i = kMarkAt; i < header.size(); ++i) {
    mark = mark << 8 | static_cast<unsigned char>(header[i]);
  }
  return mark == kApplicationId;
}

Result<std::unique_ptr<SqlDatabase>> open_sqlite(const std::string& path, StoreAccess access) {
  std::error_code code;
  if (fs::is_directory(path, code)) return fail(path, {}, "found a folder, expected a file");
  const bool there = fs::exists(path, code);
  if (access == StoreAccess::kRead && !there) return fail(path, {}, "found no such results store");
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, code)) {
    return fail(path, {}, "found no folder " + folder.string());
  }
  // Readers open for writing where they may: the last to close then leaves one file, not three.
  const int create = access == StoreAccess::kWrite ? SQLITE_OPEN_CREATE : 0;
  auto opened = open_uri(path, "", SQLITE_OPEN_READWRITE | create, access);
  if (!opened && access == StoreAccess::kRead && no_log_beside(path)) {
    // A folder that may not be written: the log's index cannot be made, and there is no log.
    auto frozen = open_uri(path, "?immutable=1", SQLITE_OPEN_READONLY, access);
    if (frozen) return std::unique_ptr<SqlDatabase>(std::move(*frozen));
  }
  if (!opened) return tl::unexpected<Error>(std::move(opened).error());
  return std::unique_ptr<SqlDatabase>(std::move(*opened));
}

}  // namespace bubblesim::store
