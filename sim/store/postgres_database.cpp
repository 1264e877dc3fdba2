// PostgreSQL behind SqlDatabase, through libpq. A statement that is run many times is sent many
// times before the answers are read (libpq's pipeline mode), so that a batch costs few round trips.
#include <libpq-fe.h>

#include <array>
#include <charconv>
#include <map>

#include "sim/base/number_text.hpp"
#include "sim/store/sql_database.hpp"

namespace bubblesim::store {
namespace {

/// Statements under way at once.
constexpr std::size_t kPipelined = 256;
constexpr const char* kConnectTimeoutSeconds = "10";

constexpr SqlDialect kPostgresDialect{
    .row_id = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    .integer = "BIGINT",
    .number = "DOUBLE PRECISION",
    .text = "TEXT COLLATE \"C\"",
    .bytes = "BYTEA",
    .table_end = "",
    .keyed_table_end = "",
    .has_table = "SELECT 1 FROM information_schema.tables WHERE table_schema = current_schema() "
                 "AND table_name = $1::text",
    .columns_of = "SELECT column_name::text FROM information_schema.columns WHERE table_schema = "
                  "current_schema() AND table_name = $1::text ORDER BY ordinal_position",
    // Any fixed number: a lock, so that only one program at a time makes the tables.
    .lock_schema = "SELECT pg_advisory_xact_lock(1112691021)",
};

struct FreeResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, FreeResult>;

std::string_view without_newline(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

class PostgresRow final : public SqlRow {
 public:
  PostgresRow(const PGresult* result, int row) : result_(result), row_(row) {}
  [[nodiscard]] bool absent(int column) const override {
    return PQgetisnull(result_, row_, column) == 1;
  }
  [[nodiscard]] std::int64_t integer(int column) const override {
    return parsed<std::int64_t>(column);
  }
  [[nodiscard]] double number(int column) const override { return parsed<double>(column); }
  [[nodiscard]] std::string text(int column) const override { return std::string(view(column)); }
  [[nodiscard]] std::vector<std::uint8_t> bytes(int column) const override {
    std::size_t size = 0;
    const auto* text = reinterpret_cast<const unsigned char*>(PQgetvalue(result_, row_, column));
    unsigned char* const bytes = PQunescapeBytea(text, &size);
    if (bytes == nullptr) return {};
    std::vector<std::uint8_t> result(bytes, bytes + size);
    PQfreemem(bytes);
    return result;
  }

 private:
  [[nodiscard]] std::string_view view(int column) const {
    return {PQgetvalue(result_, row_, column),
            static_cast<std::size_t>(PQgetlength(result_, row_, column))};
  }
  template <class Number>
  [[nodiscard]] Number parsed(int column) const {
    Number value{};
    const std::string_view digits = view(column);
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  const PGresult* result_;
  int row_;
};

/// Values as libpq wants them: texts that end with NUL, bytes as they are.
class Texts {
 public:
  /// False: a text with a NUL inside, which PostgreSQL has no place for.
  [[nodiscard]] bool set(std::span<const SqlValue> values) {
    const std::size_t count = values.size();
    texts_.resize(count);
    pointers_.assign(count, nullptr);
    lengths_.assign(count, 0);
    formats_.assign(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      if (!set_one(i, values[i])) return false;
    }
    return true;
  }
  [[nodiscard]] const char* const* pointers() const { return pointers_.data(); }
  [[nodiscard]] const int* lengths() const { return lengths_.data(); }
  [[nodiscard]] const int* formats() const { return formats_.data(); }
  [[nodiscard]] int count() const { return static_cast<int>(pointers_.size()); }

 private:
  bool set_one(std::size_t i, const SqlValue& value) {
    if (std::holds_alternative<std::monostate>(value)) return true;
    if (const auto* bytes = std::get_if<std::span<const std::uint8_t>>(&value)) {
      formats_[i] = 1;
      lengths_[i] = static_cast<int>(bytes->size());
      const auto* data = reinterpret_cast<const char*>(bytes->data());
      pointers_[i] = data == nullptr ? "" : data;
      return true;
    }
    if (const auto* text = std::get_if<std::string_view>(&value)) {
      if (text->find('\0') != std::string_view::npos) return false;
      texts_[i] = *text;
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      texts_[i] = std::to_string(*integer);
    } else {
      texts_[i] = shortest_text(std::get<double>(value));
    }
    pointers_[i] = texts_[i].c_str();
    return true;
  }

  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

class PostgresDatabase final : public SqlDatabase {
 public:
  PostgresDatabase(PGconn* connection, std::string name)
      : connection_(connection), name_(std::move(name)) {
    PQsetNoticeProcessor(connection_, [](void*, const char*) {}, nullptr);
  }
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;
  ~PostgresDatabase() override { PQfinish(connection_); }

  [[nodiscard]] const SqlDialect& dialect() const override { return kPostgresDialect; }
  [[nodiscard]] const std::string& name() const override { return name_; }

  [[nodiscard]] Result<void> execute(const std::string& sql) override {
    return query(sql, nullptr);
  }

  [[nodiscard]] Result<void> query(const std::string& sql,
                                   const std::function<void(const SqlRow&)>& visit) override {
    const Answer answer(PQexec(connection_, sql.c_str()));
    return take(answer.get(), [&](const SqlRow& row) {
      if (visit) visit(row);
    });
  }

  [[nodiscard]] Result<void> run(const std::string& sql, const SqlParameters& parameters,
                                 const SqlVisitor& visit) override {
    const std::string name = "bubblesim_" + std::to_string(names_.size());
    if (!names_.contains(sql)) {
      const Answer answer(PQprepare(connection_, name.c_str(), sql.c_str(), 0, nullptr));
      BUBBLESIM_RETURN_IF_ERROR(take(answer.get(), [](const SqlRow&) {}));
    }
    const std::string& statement = names_.try_emplace(sql, name).first->second;
    if (PQenterPipelineMode(connection_) != 1) return fault(PQerrorMessage(connection_));
    const std::size_t sets = parameters.sets();
    Result<void> result;
    for (std::size_t from = 0; result && from < sets; from += kPipelined) {
      const std::size_t to = std::min(from + kPipelined, sets);
      const auto sent = send(statement, parameters, from, to);
      if (PQpipelineSync(connection_) != 1) {
        result = fault(PQerrorMessage(connection_));
        break;
      }
      result = receive(from, to, visit);
      if (!sent) result = sent;
    }
    PQexitPipelineMode(connection_);
    return result;
  }

  [[nodiscard]] Result<void> begin(SqlTransaction kind) override {
    return execute(kind == SqlTransaction::kWrite
                       ? "BEGIN"
                       : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  }
  [[nodiscard]] Result<void> commit() override { return execute("COMMIT"); }
  void roll_back() noexcept override { PQclear(PQexec(connection_, "ROLLBACK")); }
  /// The server checks its own pages as it reads them.
  [[nodiscard]] Result<void> check() override { return {}; }

 private:
  [[nodiscard]] tl::unexpected<Error> fault(const std::string& text) const {
    return fail(name_, {}, "PostgreSQL: " + std::string(without_newline(text)));
  }
  template <class Visit>
  [[nodiscard]] Result<void> take(const PGresult* answer, const Visit& visit) const {
    const ExecStatusType status = PQresultStatus(answer);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      const char* state =
          answer == nullptr ? nullptr : PQresultErrorField(answer, PG_DIAG_SQLSTATE);
      const bool full = state != nullptr && std::string_view(state) == "53100";
      const bool lost = PQstatus(connection_) == CONNECTION_BAD;
      const std::string text = PQerrorMessage(connection_);
      const std::string own = answer == nullptr ? "" : PQresultErrorMessage(answer);
      return fault((full   ? "the server's disk is full; what was stored before is kept: "
                    : lost ? "the connection is lost; what was stored before is kept: "
                           : "") +
                   (own.empty() ? text : own));
    }
    for (int row = 0; row < PQntuples(answer); ++row) visit(PostgresRow(answer, row));
    return {};
  }
  [[nodiscard]] Result<void> send(const std::string& statement, const SqlParameters& parameters,
                                  std::size_t from, std::size_t to) {
    Texts texts;
    for (std::size_t set = from; set < to; ++set) {
      const std::span values(parameters.values);
      if (!texts.set(values.subspan(set * parameters.width, parameters.width))) {
        return fault("found a text with a NUL inside, which it cannot store");
      }
      if (PQsendQueryPrepared(connection_, statement.c_str(), texts.count(), texts.pointers(),
                              texts.lengths(), texts.formats(), 0) != 1) {
        return fault(PQerrorMessage(connection_));
      }
    }
    return {};
  }
  /// Reads the answers to what was sent, up to the mark that ends them; keeps the first fault.
  [[nodiscard]] Result<void> receive(std::size_t from, std::size_t to, const SqlVisitor& visit) {
    Result<void> result;
    std::size_t set = from;
    while (true) {
      const Answer answer(PQgetResult(connection_));
      if (!answer) {  // the end of one statement's answers
        if (PQstatus(connection_) == CONNECTION_BAD) {
          return result ? take(nullptr, [](const SqlRow&) {}) : result;
        }
        ++set;
        continue;
      }
      if (PQresultStatus(answer.get()) == PGRES_PIPELINE_SYNC) break;
      if (!result || set >= to) continue;
      result = take(answer.get(), [&](const SqlRow& row) {
        if (visit) visit(set, row);
      });
    }
    return result;
  }

  PGconn* connection_;
  std::string name_;
  std::map<std::string, std::string> names_;  // of statements, by their text
};

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

/// What messages show: the string without its password. Faults: the string is none.
Result<std::string> shown_name(const std::string& connection) {
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, FreeOptions> options(
      PQconninfoParse(connection.c_str(), &message));
  const std::string why = message == nullptr ? "" : message;
  PQfreemem(message);
  if (!options) {
    return fail("postgresql://...", {}, "is no connection string: " +
                                            std::string(without_newline(why)) +
                                            "; expected postgresql://user@host/database");
  }
  std::map<std::string, std::string> values;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) values[option->keyword] = option->val;
  }
  std::string name = "postgresql://" + values["host"];
  if (values.contains("port")) name += ":" + values["port"];
  return name + "/" + values["dbname"];
}

}  // namespace

Result<std::unique_ptr<SqlDatabase>> open_postgres(const std::string& connection,
                                                   StoreAccess access) {
  BUBBLESIM_ASSIGN_OR_RETURN(std::string name, shown_name(connection));
  // What comes after `dbname`, the connection string itself, wins over what is in the string.
  const std::array<const char*, 5> keywords{"connect_timeout", "fallback_application_name",
                                            "dbname", "client_encoding", nullptr};
  const std::array<const char*, 5> values{kConnectTimeoutSeconds, "bubblesim", connection.c_str(),
                                          "UTF8", nullptr};
  PGconn* const handle = PQconnectdbParams(keywords.data(), values.data(), 1);
  auto database = std::make_unique<PostgresDatabase>(handle, name);
  if (PQstatus(handle) != CONNECTION_OK) {
    return fail(name, {}, "cannot be reached: " +
                              std::string(without_newline(PQerrorMessage(handle))));
  }
  BUBBLESIM_RETURN_IF_ERROR(database->execute(
      access == StoreAccess::kRead ? "SET default_transaction_read_only = on"
                                   : "SET default_transaction_read_only = off"));
  return std::unique_ptr<SqlDatabase>(std::move(database));
}

}  // namespace bubblesim::store
