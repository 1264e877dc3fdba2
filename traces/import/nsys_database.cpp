#include "traces/import/nsys_database.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cctype>

#include "sim/base/input_file.hpp"
#include "sim/base/packed_file.hpp"

namespace bubblesim::traces::nsys {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeaderBytes = 100;
/// Exports have about 250 tables; the longest values are environments and texts of NVTX.
constexpr std::size_t kMaxTables = 4096;
constexpr int kMaxValueBytes = 16 << 20;

std::string sql_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

bool alike(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

std::uint64_t big_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

/// What the header promises; nothing if it does not say.
std::optional<std::uint64_t> promised_bytes(std::string_view header) {
  if (header.size() < kHeaderBytes || header.substr(24, 4) != header.substr(92, 4)) {
    return std::nullopt;
  }
  const std::uint64_t page = big_endian(header, 16, 2);
  return big_endian(header, 28, 4) * (page == 1 ? 65536 : page);
}

constexpr std::string_view kExpected =
    "; expected an SQLite database as 'nsys export --type sqlite' writes it";

/// A query, finalised with the object.
class Query {
 public:
  Query(sqlite3* database, const std::string& sql)
      : status_(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr)) {}
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query() { sqlite3_finalize(statement_); }

  /// Moves to the next row; false: the end, or a fault, which status() tells apart.
  bool next() {
    if (status_ == SQLITE_OK || status_ == SQLITE_ROW) status_ = sqlite3_step(statement_);
    return status_ == SQLITE_ROW;
  }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] std::int64_t integer(int column) const {
    return sqlite3_column_int64(statement_, column);
  }
  /// Null: absent.
  [[nodiscard]] const char* text(int column) const {
    return reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int status_;
};

Result<void> check_header(std::string_view header, std::uint64_t size, const std::string& file) {
  if (size == 0) return fail(file, {}, "is empty" + std::string(kExpected));
  if (!header.starts_with(kSqliteMagic)) {
    return fail(file, {}, "is not an SQLite database" + std::string(kExpected));
  }
  const auto promised = promised_bytes(header);
  if (size < kHeaderBytes || (promised && *promised > size)) {
    return fail(file, {},
                "is cut: found " + std::to_string(size) + " bytes, but its header says " +
                    std::to_string(promised.value_or(kHeaderBytes)) +
                    " (an export or a copy that was interrupted?)");
  }
  return {};
}

/// What follows `out`, after it.
Result<std::string> unpack(ByteStream& packed, const fs::path& path, std::string out,
                           std::uint64_t limit) {
  constexpr std::size_t kBlock = std::size_t{1} << 20U;
  for (;;) {
    const std::size_t held = out.size();
    if (held > limit) {
      return fail(path.string(), {},
                  "is gzip of more than " + std::to_string(limit) +
                      " bytes, which are unpacked in memory; unpack it first (gunzip)");
    }
    out.resize(held + kBlock);
    out.resize(held + packed.read(out.data() + held, kBlock));
    if (out.size() == held) return out;
  }
}

}  // namespace

Database::~Database() { sqlite3_close(handle_); }

std::string Database::fault() const {
  return handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_);
}

void Database::harden() {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_exec(handle_, "PRAGMA cell_size_check=ON", nullptr, nullptr, nullptr);
  // A row takes 8 bytes or more, and no table is read more than twice.
  rows_left_ = size_ / 4 + 1024;
  text_left_ = 8 * size_ + (std::uint64_t{1} << 20U);
}

Result<void> Database::list_tables() {
  Query query(handle_, "SELECT name, rootpage FROM sqlite_master WHERE type='table'");
  while (query.next()) {
    if (tables_.size() >= kMaxTables) return fail(source_, {}, "has more than 4096 tables");
    // Virtual tables have no page of their own.
    const char* name = query.text(0);
    if (name != nullptr && query.integer(1) > 0) tables_.emplace_back(name);
  }
  if (query.status() == SQLITE_DONE) return {};
  return fail(source_, {}, "cannot be read as an SQLite database: " + fault());
}

Result<std::unique_ptr<Database>> Database::open(const fs::path& path,
                                                 std::uint64_t max_unpacked_bytes) {
  BUBBLESIM_ASSIGN_OR_RETURN(ByteStream bytes, ByteStream::open(path));
  std::string header(kHeaderBytes, '\0');
  header.resize(bytes.read(header.data(), header.size()));
  if (bytes.packed()) {
    if (!header.starts_with(kSqliteMagic)) {
      return fail(path.string(), {},
                  "is gzip, but not of an SQLite database" + std::string(kExpected));
    }
    BUBBLESIM_ASSIGN_OR_RETURN(
        std::string all, unpack(bytes, path, std::move(header), max_unpacked_bytes));
    auto made = from_memory(std::move(all), path.string());
    if (made) (*made)->gzip_damaged_ = bytes.damaged();
    return made;
  }
  BUBBLESIM_RETURN_IF_ERROR(check_header(header, bytes.total(), path.string()));
  std::unique_ptr<Database> made(new Database(path.string(), bytes.total()));
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  // Immutable: no lock, and no journal beside the file is looked for.
  const std::string uri = file_uri(path.string()) + "?immutable=1";
  if (sqlite3_open_v2(uri.c_str(), &made->handle_, flags, nullptr) != SQLITE_OK) {
    return fail(path.string(), {}, "cannot be opened: " + made->fault());
  }
  made->harden();
  BUBBLESIM_RETURN_IF_ERROR(made->list_tables());
  return made;
}

Result<std::unique_ptr<Database>> Database::from_memory(std::string bytes,
                                                        const std::string& source) {
  BUBBLESIM_RETURN_IF_ERROR(
      check_header(std::string_view(bytes).substr(0, kHeaderBytes), bytes.size(), source));
  std::unique_ptr<Database> made(new Database(source, bytes.size()));
  made->memory_ = std::move(bytes);
  // Write-ahead logging is of no use to a copy in memory, and SQLite would refuse it.
  made->memory_[18] = made->memory_[19] = 1;
  auto* data = reinterpret_cast<unsigned char*>(made->memory_.data());
  const auto size = static_cast<sqlite3_int64>(made->size_);
  if (sqlite3_open_v2(":memory:", &made->handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK ||
      sqlite3_deserialize(made->handle_, "main", data, size, size,
                          SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) {
    return fail(source, {}, "cannot be opened: " + made->fault());
  }
  made->harden();
  BUBBLESIM_RETURN_IF_ERROR(made->list_tables());
  return made;
}

bool Database::has_table(std::string_view table) const {
  return std::ranges::any_of(tables_,
                             [table](const std::string& name) { return alike(name, table); });
}

std::vector<std::string> Database::columns(std::string_view table) const {
  std::vector<std::string> names;
  if (!has_table(table)) return names;
  Query query(handle_, "PRAGMA table_info(" + sql_name(table) + ")");
  while (query.next()) {
    const char* name = query.text(1);
    names.emplace_back(name == nullptr ? "" : name);
  }
  return names;
}

bool Database::is_row_key(std::string_view table, std::string_view column) const {
  // EXPLAIN QUERY PLAN says how SQLite would look for it, whatever way the key was declared.
  if (!has_table(table)) return false;
  Query query(handle_, "EXPLAIN QUERY PLAN SELECT 1 FROM " + sql_name(table) + " WHERE " +
                                  sql_name(column) + "=1");
  const char* plan = query.next() ? query.text(3) : nullptr;
  return plan != nullptr && std::string_view(plan).starts_with("SEARCH");
}

std::uint64_t Database::estimated_rows(std::string_view table) const {
  if (!has_table(table)) return 0;
  Query query(handle_, "SELECT max(rowid) FROM " + sql_name(table));
  const std::int64_t rows = query.next() ? query.integer(0) : 0;
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(
      rows, 0, static_cast<std::int64_t>(size_ / 8)));
}

Rows::Rows(const Database& database, std::string_view table, Columns columns)
    : Rows(database, std::string(table), columns, {}) {}

Rows Rows::by_key(const Database& database, std::string_view table, std::string_view key,
                  Columns columns) {
  return {database, std::string(table), columns, key};
}

Rows::Rows(const Database& database, const std::string& table, Columns columns,
           std::string_view key)
    : database_(&database) {
  if (!database.has_table(table)) return;
  const std::vector<std::string> stored = database.columns(table);
  std::string sql = "SELECT ";
  for (const std::string_view column : columns) {
    if (!present_.empty()) sql += ", ";
    present_.push_back(std::ranges::any_of(
        stored, [&](const std::string& name) { return alike(name, column); }));
    sql += present_.back() ? sql_name(column) : std::string("NULL");
  }
  sql += " FROM " + sql_name(table);
  if (!key.empty()) sql += " WHERE " + sql_name(key) + "=?1";
  prepare(sql);
}

Rows::Rows(Rows&& other) noexcept
    : database_(other.database_), statement_(other.statement_), present_(std::move(other.present_)),
      damaged_(other.damaged_) {
  other.statement_ = nullptr;
}

Rows::~Rows() { sqlite3_finalize(statement_); }

void Rows::prepare(const std::string& sql) {
  if (sqlite3_prepare_v2(database_->handle_, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) {
    fail_with(sqlite3_errmsg(database_->handle_));
  }
}

void Rows::fail_with(std::string fault) {
  damaged_ = true;
  if (database_->damage_.empty()) database_->damage_ = std::move(fault);
  sqlite3_finalize(statement_);
  statement_ = nullptr;
}

void Rows::seek(std::int64_t key) {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_bind_int64(statement_, 1, key);
}

bool Rows::next() {
  if (statement_ == nullptr) return false;
  if (database_->rows_left_ == 0 || database_->text_left_ == 0) {
    fail_with("more rows or longer texts than a file of its size can hold: its pages refer to "
              "one another in circles");
    return false;
  }
  const int status = sqlite3_step(statement_);
  if (status == SQLITE_ROW) {
    --database_->rows_left_;
    return true;
  }
  if (status != SQLITE_DONE) fail_with(sqlite3_errmsg(database_->handle_));
  return false;
}

std::optional<std::int64_t> Rows::integer(std::size_t column) const {
  const int at = static_cast<int>(column);
  if (sqlite3_column_type(statement_, at) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_, at);
}

std::optional<std::string_view> Rows::text(std::size_t column) const {
  if (sqlite3_column_type(statement_, static_cast<int>(column)) != SQLITE_TEXT) {
    return std::nullopt;
  }
  return bytes(column);
}

std::optional<std::string_view> Rows::bytes(std::size_t column) const {
  const int at = static_cast<int>(column);
  const int type = sqlite3_column_type(statement_, at);
  if (type != SQLITE_TEXT && type != SQLITE_BLOB) return std::nullopt;
  const void* data = sqlite3_column_blob(statement_, at);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, at));
  database_->text_left_ -= std::min<std::uint64_t>(database_->text_left_, size);
  return std::string_view(static_cast<const char*>(data), data == nullptr ? 0 : size);
}

}  // namespace bubblesim::traces::nsys
