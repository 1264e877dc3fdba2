#include "sim/store/results_store.hpp"

#include <set>

#include "sim/base/nearest.hpp"
#include "sim/store/sql_database.hpp"
#include "sim/store/store_reader.hpp"
#include "sim/store/store_schema.hpp"
#include "sim/store/store_writer.hpp"

namespace bubblesim::store {
namespace {

// The results store on an SQL database: the same statements for SQLite and PostgreSQL.

class SqlStore final : public ResultsStore {
 public:
  /// The schema of `database` is prepared (store_schema.hpp).
  [[nodiscard]] static Result<std::unique_ptr<ResultsStore>> create(
      std::unique_ptr<SqlDatabase> database);

  [[nodiscard]] Result<std::size_t> add(std::span<const RunRecord> records) override;
  [[nodiscard]] Result<void> join(const std::string& sweep,
                                  std::span<const PlannedRun> runs) override;
  [[nodiscard]] Result<std::unordered_set<std::string>> done() override;
  [[nodiscard]] Result<std::unordered_set<std::string>> failed() override;
  [[nodiscard]] Result<void> each_row(
      const RowFilter& filter, const std::function<void(const StoredRow&)>& visit) override;
  [[nodiscard]] Result<void> each_run(
      const RowFilter& filter, const std::function<void(const StoredRun&)>& visit) override;
  [[nodiscard]] Result<std::optional<observe::LatencyHistogram>> latency(
      const std::string& key, std::uint32_t policy, std::uint32_t filler) override;
  using ResultsStore::each_record;
  [[nodiscard]] Result<void> each_record(
      const RowFilter& filter, const std::function<void(const RunRecord&)>& visit) override;
  [[nodiscard]] Result<void> check_names(const RowFilter& filter) override;
  [[nodiscard]] Result<void> check() override;
  [[nodiscard]] bool is_gone() const override { return database_->is_gone(); }

 private:
  explicit SqlStore(std::unique_ptr<SqlDatabase> database) : database_(std::move(database)) {}

  [[nodiscard]] Result<std::unordered_set<std::string>> keys(std::string_view status);

  std::unique_ptr<SqlDatabase> database_;
  StoreShape shape_;
};

bool is_postgres(const std::string& where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

StoredRun stored_run(StoredRecord& stored) {
  std::string first = stored.record.sweep;
  stored.relabel();
  RunRecord& record = stored.record;
  return {std::move(record.run),     std::move(record.sweep),  record.status,
          std::move(record.reason),  std::move(record.host),   std::move(record.version),
          record.finished_unix_ns,   record.cpu,               std::move(first)};
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

}  // namespace

Result<std::unique_ptr<ResultsStore>> SqlStore::create(std::unique_ptr<SqlDatabase> database) {
  std::unique_ptr<SqlStore> store(new SqlStore(std::move(database)));
  StoreShape& shape = store->shape_;
  BUBBLESIM_ASSIGN_OR_RETURN(shape.row_columns, columns_of(*store->database_, "rows"));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto columns, columns_of(*store->database_, "memberships"));
  shape.memberships = !columns.empty();
  return std::unique_ptr<ResultsStore>(std::move(store));
}

Result<std::size_t> SqlStore::add(std::span<const RunRecord> records) {
  for (const RunRecord& record : records) BUBBLESIM_RETURN_IF_ERROR(check_record(record));
  if (records.empty()) return std::size_t{0};
  BUBBLESIM_RETURN_IF_ERROR(database_->begin(SqlTransaction::kWrite));
  auto stored = write_records(*database_, records);
  if (stored) {
    if (auto end = database_->commit(); !end) stored = tl::unexpected<Error>(end.error());
  }
  if (!stored) database_->roll_back();
  return stored;
}

Result<void> SqlStore::join(const std::string& sweep, std::span<const PlannedRun> runs) {
  if (runs.empty()) return {};
  std::vector<Membership> members;
  for (const PlannedRun& run : runs) members.push_back({sweep, &run});
  BUBBLESIM_RETURN_IF_ERROR(database_->begin(SqlTransaction::kWrite));
  Result<void> joined;
  auto others = stored_elsewhere(*database_, members);
  if (!others) joined = tl::unexpected<Error>(std::move(others).error());
  if (joined) joined = write_memberships(*database_, *std::move(others));
  if (joined) joined = database_->commit();
  if (!joined) database_->roll_back();
  return joined;
}

Result<std::unordered_set<std::string>> SqlStore::done() { return keys("done"); }

Result<std::unordered_set<std::string>> SqlStore::failed() { return keys("failed"); }

Result<std::unordered_set<std::string>> SqlStore::keys(std::string_view status) {
  std::unordered_set<std::string> found;
  BUBBLESIM_RETURN_IF_ERROR(
      database_->query("SELECT key FROM runs WHERE status = '" + std::string(status) + "'",
                       [&](const SqlRow& row) { found.insert(row.text(0)); }));
  return found;
}

Result<void> SqlStore::each_row(const RowFilter& filter,
                                const std::function<void(const StoredRow&)>& visit) {
  const auto visit_run = [&](StoredRecord& stored) -> Result<void> {
    stored.relabel();
    RunRecord& record = stored.record;
    StoredRow row{record.run.key,  record.run.point,      record.sweep,        record.run.index,
                  record.run.seed, record.run.repetition, record.run.settings, {}};
    for (observe::ResultRow& cells : record.rows) {
      if (!passes(cells, filter)) continue;
      row.row = std::move(cells);
      visit(row);
    }
    return {};
  };
  return read_records(*database_, filter, RunsOf::kEachSweep, shape_, visit_run);
}

Result<void> SqlStore::each_run(const RowFilter& filter,
                                const std::function<void(const StoredRun&)>& visit) {
  const bool by_row = !filter.policies.empty() || !filter.fillers.empty();
  const auto visit_run = [&](StoredRecord& stored) -> Result<void> {
    bool wanted = !by_row;
    for (const observe::ResultRow& row : stored.record.rows) {
      wanted = wanted || passes(row, filter);
    }
    if (wanted) visit(stored_run(stored));
    return {};
  };
  return read_records(*database_, filter, RunsOf::kEachSweep, shape_, visit_run);
}

Result<std::optional<observe::LatencyHistogram>> SqlStore::latency(const std::string& key,
                                                                   std::uint32_t policy,
                                                                   std::uint32_t filler) {
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

Result<void> SqlStore::each_record(const RowFilter& filter,
                                   const std::function<void(const RunRecord&)>& visit) {
  const auto visit_record = [&](StoredRecord& stored) -> Result<void> {
    stored.relabel();
    visit(stored.record);
    return {};
  };
  const RunsOf runs_of = filter.sweeps.empty() ? RunsOf::kFirstSweep : RunsOf::kEachSweep;
  return read_records(*database_, filter, runs_of, shape_, visit_record);
}

Result<void> SqlStore::check_names(const RowFilter& filter) {
  const std::string others = shape_.memberships ? " UNION SELECT sweep FROM memberships" : "";
  BUBBLESIM_RETURN_IF_ERROR(
      check_known(*database_, "sweep", filter.sweeps, "SELECT sweep FROM runs" + others));
  BUBBLESIM_RETURN_IF_ERROR(check_known(*database_, "policy", filter.policies,
                                        "SELECT DISTINCT \"policy\" FROM rows"));
  return check_known(*database_, "filler", filter.fillers,
                     "SELECT DISTINCT \"filler\" FROM rows");
}

Result<void> SqlStore::check() {
  BUBBLESIM_RETURN_IF_ERROR(database_->check());
  BUBBLESIM_RETURN_IF_ERROR(each_record([](const RunRecord&) {}));
  return each_run({}, [](const StoredRun&) {});  // memberships have check sums of their own
}

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
