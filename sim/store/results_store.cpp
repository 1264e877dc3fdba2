#include "sim/store/results_store.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/nearest.hpp"
#include "sim/base/utf8.hpp"
#include "sim/store/sql_database.hpp"
#include "sim/store/store_reader.hpp"
#include "sim/store/store_schema.hpp"

namespace bubblesim::store {
namespace {

// ---- Texts from outside, as every database takes them: valid UTF-8 without NUL.

// Databases end texts at NUL.
bool storable(std::string_view text) {
  return text.find('\0') == std::string_view::npos && is_utf8(text);
}

// Bytes that no database takes as text become U+FFFD.
std::string made_storable(std::string_view text) {
  std::string result = repaired_utf8(text);
  for (std::size_t at = result.find('\0'); at != std::string::npos; at = result.find('\0', at)) {
    result.replace(at, 1, kReplacementCharacter);
  }
  return result;
}

using Values = std::vector<SqlValue>;

/// Whole numbers of 64 bits without sign are kept as the same bits.
std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

SqlValue value_of(const observe::Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return *integer;
  if (const auto* text = std::get_if<std::string>(&cell)) return std::string_view(*text);
  const auto* number = std::get_if<double>(&cell);
  if (number == nullptr || std::isnan(*number)) return std::monostate{};
  return *number;
}

bool fits(const observe::Cell& cell, observe::CellType type) {
  if (std::holds_alternative<std::monostate>(cell)) return true;
  switch (type) {
    case observe::CellType::kInteger: return std::holds_alternative<std::int64_t>(cell);
    case observe::CellType::kNumber: return std::holds_alternative<double>(cell);
    case observe::CellType::kText: break;
  }
  return std::holds_alternative<std::string>(cell);
}

/// Does `a` take the place of `b`, of the same key? The first that is done stays; of failures the
/// last.
bool replaces(const RunRecord& a, const RunRecord& b) {
  if (b.status == RunStatus::kDone) return false;
  return a.status == RunStatus::kDone || a.finished_unix_ns > b.finished_unix_ns;
}

/// Texts from outside: file names in reasons, names of machines.
constexpr std::string RunRecord::*kOutside[] = {&RunRecord::sweep, &RunRecord::reason,
                                                &RunRecord::host, &RunRecord::version};

struct Distinct {
  std::vector<const RunRecord*> records;  ///< one a key, in the order of keys
  std::vector<const RunRecord*> left_out;
};

/// In the order of keys: two writers that wait for each other's rows wait in one order. `changed`
/// holds those whose texts had to be.
Distinct distinct(std::span<const RunRecord> records, std::list<RunRecord>& changed) {
  std::map<std::string_view, const RunRecord*> by_key;
  Distinct result;
  for (const RunRecord& given : records) {
    const bool right = std::all_of(std::begin(kOutside), std::end(kOutside),
                                   [&](const auto member) { return storable(given.*member); });
    const RunRecord& record = right ? given : changed.emplace_back(given);
    for (const auto member : kOutside) {
      if (!right) changed.back().*member = made_storable(given.*member);
    }
    const auto [place, is_new] = by_key.emplace(record.run.key, &record);
    if (is_new) continue;
    const bool better = replaces(record, *place->second);
    result.left_out.push_back(better ? std::exchange(place->second, &record) : &record);
  }
  for (const auto& [key, record] : by_key) result.records.push_back(record);
  return result;
}

std::string_view status_text(RunStatus status) {
  return status == RunStatus::kDone ? "done" : "failed";
}

class Writer {
 public:
  explicit Writer(SqlDatabase& database) : database_(database) {}

  [[nodiscard]] Result<std::size_t> write(const Distinct& distinct) {
    const std::vector<const RunRecord*>& records = distinct.records;
    BUBBLESIM_RETURN_IF_ERROR(clear_failed(records));
    BUBBLESIM_ASSIGN_OR_RETURN(const auto runs, insert_runs(records));
    BUBBLESIM_RETURN_IF_ERROR(insert_parts(records, runs));
    BUBBLESIM_RETURN_IF_ERROR(insert_memberships(distinct, runs));
    return static_cast<std::size_t>(
        std::count_if(runs.begin(), runs.end(), [](const auto& run) { return run.has_value(); }));
  }

 private:
  using RunIds = std::vector<std::optional<std::int64_t>>;

  /// Failures that the records take the place of, with all that belongs to them.
  [[nodiscard]] Result<void> clear_failed(const std::vector<const RunRecord*>& records) {
    SqlParameters parameters{2, {}};
    for (const RunRecord* record : records) {
      const bool done = record->status == RunStatus::kDone;
      parameters.values.emplace_back(std::string_view(record->run.key));
      parameters.values.emplace_back(done ? std::numeric_limits<std::int64_t>::max()
                                          : record->finished_unix_ns);
    }
    return database_.run("DELETE FROM runs WHERE key = $1 AND status = 'failed' AND "
                         "finished_unix_ns < $2", parameters, nullptr);
  }

  /// Row ids of those that were not there.
  [[nodiscard]] Result<RunIds> insert_runs(const std::vector<const RunRecord*>& records) {
    SqlParameters parameters{14, {}};
    parameters.values.reserve(records.size() * parameters.width);
    for (std::size_t i = 0; i < records.size(); ++i) {
      append_run(parameters.values, *records[i], record_digest(*records[i]));
    }
    RunIds runs(records.size());
    BUBBLESIM_RETURN_IF_ERROR(database_.run(
        insert_statement(store_table("runs")) + " ON CONFLICT (key) DO NOTHING RETURNING run",
        parameters, [&](std::size_t set, const SqlRow& row) { runs[set] = row.integer(0); }));
    return runs;
  }

  static void append_run(Values& values, const RunRecord& record, std::uint64_t digest) {
    const PlannedRun& run = record.run;
    values.insert(values.end(),
                  {std::string_view(run.key), std::string_view(record.sweep),
                   as_signed(run.index), std::string_view(run.point), as_signed(run.seed),
                   std::int64_t{run.repetition}, status_text(record.status),
                   std::string_view(record.reason), std::string_view(run.config),
                   std::string_view(record.host), std::string_view(record.version),
                   record.finished_unix_ns, to_ns(record.cpu),
                   as_signed(digest)});
  }

  [[nodiscard]] Result<void> insert_parts(const std::vector<const RunRecord*>& records,
                                          const RunIds& runs) {
    Values settings, rows, latencies, counters;
    std::list<std::vector<std::uint8_t>> histograms;  // that `latencies` refer to
    rows.reserve(records.size() * store_table("rows").columns.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (!runs[i]) continue;
      append_settings(settings, *runs[i], records[i]->run.settings);
      append_rows(rows, *runs[i], records[i]->rows);
      append_latencies(latencies, *runs[i], *records[i], histograms);
      append_counters(counters, *runs[i], records[i]->counters);
    }
    BUBBLESIM_RETURN_IF_ERROR(insert("settings", std::move(settings)));
    BUBBLESIM_RETURN_IF_ERROR(insert("rows", std::move(rows)));
    BUBBLESIM_RETURN_IF_ERROR(insert("latencies", std::move(latencies)));
    return insert("counters", std::move(counters));
  }

  /// Inserts memberships of records that are stored under another sweep, and of failures, which
  /// others may replace.
  [[nodiscard]] Result<void> insert_memberships(const Distinct& distinct, const RunIds& runs) {
    std::vector<Membership> failed, elsewhere;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const RunRecord& record = *distinct.records[i];
      const Membership member{record.sweep, &record.run};
      if (!runs[i]) elsewhere.push_back(member);
      if (runs[i] && record.status == RunStatus::kFailed) failed.push_back(member);
    }
    for (const RunRecord* record : distinct.left_out) {
      elsewhere.push_back({record->sweep, &record->run});
    }
    BUBBLESIM_ASSIGN_OR_RETURN(auto members, stored_elsewhere(database_, elsewhere));
    members.insert(members.end(), failed.begin(), failed.end());
    return write_memberships(database_, std::move(members));
  }

  static void append_settings(Values& values, std::int64_t run,
                              const std::vector<Setting>& settings) {
    std::int64_t place = 0;
    for (const Setting& setting : settings) {
      values.insert(values.end(), {run, place++, std::string_view(setting.pointer),
                                   std::string_view(setting.value)});
    }
  }

  static void append_rows(Values& values, std::int64_t run,
                          const std::vector<observe::ResultRow>& rows) {
    for (const observe::ResultRow& row : rows) {
      values.insert(values.end(), {run, std::int64_t{row.policy}, std::int64_t{row.filler}});
      for (const observe::Cell& cell : row.cells) values.push_back(value_of(cell));
    }
  }

  static void append_latencies(Values& values, std::int64_t run, const RunRecord& record,
                               std::list<std::vector<std::uint8_t>>& histograms) {
    for (const RecordedLatency& latency : record.latencies) {
      histograms.push_back(latency.histogram.encode());
      values.insert(values.end(),
                    {run, std::int64_t{latency.policy}, std::int64_t{latency.filler},
                     as_signed(latency.histogram.completed()),
                     as_signed(latency.histogram.unfinished()),
                     std::span<const std::uint8_t>(histograms.back())});
    }
  }

  static void append_counters(Values& values, std::int64_t run, const CounterSet& counters) {
    for (const auto& [name, entry] : counters) {
      values.insert(values.end(), {run, std::string_view(name), severity_name(entry.severity),
                                   as_signed(entry.count), std::string_view(entry.help)});
    }
  }

  [[nodiscard]] Result<void> insert(std::string_view table, Values&& values) {
    if (values.empty()) return {};
    const SqlParameters parameters{store_table(table).columns.size(), std::move(values)};
    return database_.run(insert_statement(store_table(table)), parameters, nullptr);
  }

  SqlDatabase& database_;
};

/// Twice the same policy and filler.
template <class Item>
bool repeats(const std::vector<Item>& items) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  return std::any_of(items.begin(), items.end(), [&](const Item& item) {
    return !seen.emplace(item.policy, item.filler).second;
  });
}

/// Faults of a record itself: nothing of it may be stored.
Result<void> check_record(const RunRecord& record) {
  const std::string place = "run " + record.run.key;
  if (record.run.key.empty()) return fail({}, place, "found no key");
  if (repeats(record.rows) || repeats(record.latencies)) {
    return fail({}, place, "found two rows of one policy and filler");
  }
  const auto columns = observe::result_columns();
  for (const observe::ResultRow& row : record.rows) {
    if (row.cells.size() != columns.size()) {
      return fail({}, place, "found a row of " + std::to_string(row.cells.size()) +
                                 " cells, expected " + std::to_string(columns.size()));
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (fits(row.cells[i], columns[i].type)) continue;
      return fail({}, place, "found a value of another type in column " +
                                 std::string(columns[i].name));
    }
  }
  return {};
}

/// Puts records into the tables, inside a transaction that the caller opened, as add() of
/// ResultsStore takes them, checked. Returns how many were stored.
Result<std::size_t> write_records(SqlDatabase& database, std::span<const RunRecord> records) {
  std::list<RunRecord> changed;
  return Writer(database).write(distinct(records, changed));
}

/// Fault: the first of `names` that is not in the column which `sql` selects.
Result<void> check_known(SqlDatabase& database, std::string_view kind,
                         const std::vector<std::string>& names, const std::string& sql) {
  if (names.empty()) return {};
  std::set<std::string> known;
  BUBBLESIM_RETURN_IF_ERROR(database.query(sql, [&](const SqlRow& row) {
    if (!row.absent(0)) known.insert(row.text(0));
  }));
  for (const std::string& name : names) {
    if (known.contains(name)) continue;
    return fail(database.name(), {},
                unknown_name_message(kind, name, std::vector(known.begin(), known.end())));
  }
  return {};
}

// The results store on an SQL database: the same statements for SQLite and PostgreSQL.

class SqlStore final : public ResultsStore {
 public:
  /// The schema of `database` is prepared (store_schema.hpp).
  [[nodiscard]] static Result<std::unique_ptr<ResultsStore>> create(
      std::unique_ptr<SqlDatabase> database) {
    std::unique_ptr<SqlStore> store(new SqlStore(std::move(database)));
    StoreShape& shape = store->shape_;
    BUBBLESIM_ASSIGN_OR_RETURN(shape.row_columns, columns_of(*store->database_, "rows"));
    BUBBLESIM_ASSIGN_OR_RETURN(const auto columns, columns_of(*store->database_, "memberships"));
    shape.memberships = !columns.empty();
    return std::unique_ptr<ResultsStore>(std::move(store));
  }

  [[nodiscard]] Result<std::size_t> add(std::span<const RunRecord> records) override {
    for (const RunRecord& record : records) BUBBLESIM_RETURN_IF_ERROR(check_record(record));
    if (records.empty()) return std::size_t{0};
    return in_transaction(*database_, SqlTransaction::kWrite,
                          [&] { return write_records(*database_, records); });
  }
  [[nodiscard]] Result<void> join(const std::string& sweep,
                                  std::span<const PlannedRun> runs) override {
    if (runs.empty()) return {};
    std::vector<Membership> members;
    for (const PlannedRun& run : runs) members.push_back({sweep, &run});
    return in_transaction(*database_, SqlTransaction::kWrite, [&]() -> Result<void> {
      BUBBLESIM_ASSIGN_OR_RETURN(auto others, stored_elsewhere(*database_, members));
      return write_memberships(*database_, std::move(others));
    });
  }
  [[nodiscard]] Result<std::unordered_set<std::string>> done() override { return keys("done"); }
  [[nodiscard]] Result<std::unordered_set<std::string>> failed() override { return keys("failed"); }
  [[nodiscard]] Result<void> each_row(
      const RowFilter& filter, const std::function<void(const StoredRow&)>& visit) override {
    const auto visit_run = [&](RunRecord& record) {
      record.run.config.clear();
      StoredRow row{std::move(record.run), std::move(record.sweep), {}};
      for (observe::ResultRow& cells : record.rows) {
        if (!passes(cells, filter)) continue;
        row.row = std::move(cells);
        visit(row);
      }
    };
    return read_records(*database_, filter, RunsOf::kEachSweep, shape_, visit_run);
  }
  [[nodiscard]] Result<void> each_run(
      const RowFilter& filter, const std::function<void(const RunRecord&)>& visit) override {
    const bool by_row = !filter.policies.empty() || !filter.fillers.empty();
    const auto visit_run = [&](RunRecord& record) {
      const bool wanted = !by_row || std::ranges::any_of(record.rows, [&](const auto& row) {
        return passes(row, filter);
      });
      record.rows.clear();
      record.latencies.clear();
      record.counters = {};
      if (wanted) visit(record);
    };
    return read_records(*database_, filter, RunsOf::kEachSweep, shape_, visit_run);
  }
  [[nodiscard]] Result<std::optional<observe::LatencyHistogram>> latency(
      const std::string& key, std::uint32_t policy, std::uint32_t filler) override {
    std::optional<observe::LatencyHistogram> found;
    RowFilter of_run;
    of_run.key = key;
    BUBBLESIM_RETURN_IF_ERROR(each_record(of_run, [&](const RunRecord& record) {
      for (const RecordedLatency& latency : record.latencies) {
        const bool wanted = latency.policy == policy && latency.filler == filler;
        if (record.run.key == key && wanted) found = latency.histogram;
      }
    }));
    return found;
  }
  using ResultsStore::each_record;
  [[nodiscard]] Result<void> each_record(
      const RowFilter& filter, const std::function<void(const RunRecord&)>& visit) override {
    const RunsOf runs_of = filter.sweeps.empty() ? RunsOf::kFirstSweep : RunsOf::kEachSweep;
    return read_records(*database_, filter, runs_of, shape_, visit);
  }
  [[nodiscard]] Result<void> check_names(const RowFilter& filter) override {
    const std::string others = shape_.memberships ? " UNION SELECT sweep FROM memberships" : "";
    BUBBLESIM_RETURN_IF_ERROR(
        check_known(*database_, "sweep", filter.sweeps, "SELECT sweep FROM runs" + others));
    BUBBLESIM_RETURN_IF_ERROR(check_known(*database_, "policy", filter.policies,
                                          "SELECT DISTINCT \"policy\" FROM rows"));
    return check_known(*database_, "filler", filter.fillers,
                       "SELECT DISTINCT \"filler\" FROM rows");
  }
  [[nodiscard]] Result<void> check() override {
    BUBBLESIM_RETURN_IF_ERROR(database_->check());
    BUBBLESIM_RETURN_IF_ERROR(each_record([](const RunRecord&) {}));
    return each_run({}, [](const RunRecord&) {});  // memberships have check sums of their own
  }
  [[nodiscard]] bool is_gone() const override { return database_->is_gone(); }

 private:
  explicit SqlStore(std::unique_ptr<SqlDatabase> database) : database_(std::move(database)) {}

  [[nodiscard]] Result<std::unordered_set<std::string>> keys(std::string_view status) {
    std::unordered_set<std::string> found;
    BUBBLESIM_RETURN_IF_ERROR(
        database_->query("SELECT key FROM runs WHERE status = '" + std::string(status) + "'",
                         [&](const SqlRow& row) { found.insert(row.text(0)); }));
    return found;
  }

  std::unique_ptr<SqlDatabase> database_;
  StoreShape shape_;
};

bool is_postgres(const std::string& where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

}  // namespace

bool is_store(const std::string& where) {
  return is_postgres(where) || is_marked_sqlite(where);
}

Result<std::unique_ptr<ResultsStore>> open_store(const std::string& where, StoreAccess access) {
  if (where.empty()) return fail("found no name of a store, expected a file or postgresql://...");
  const bool postgres = is_postgres(where);
  if (!postgres && where.find("://") != std::string::npos) {
    return fail(where, {}, "is no kind of store; expected a file or postgresql://...");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto database, postgres ? open_postgres(where, access) : open_sqlite(where, access));
  BUBBLESIM_RETURN_IF_ERROR(prepare_schema(*database, access));
  return SqlStore::create(std::move(database));
}

}  // namespace bubblesim::store
