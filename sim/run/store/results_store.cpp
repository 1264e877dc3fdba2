#include "sim/run/store/results_store.hpp"

#include "sim/run/store/record_digest.hpp"
#include "sim/run/store/sql_store.hpp"
#include "sim/run/store/store_reader.hpp"
#include "sim/run/store/store_schema.hpp"
#include "sim/run/store/store_writer.hpp"

namespace bubblesim::run {
namespace {

constexpr std::string_view kPostgres[] = {"postgresql://", "postgres://"};

StoredRun stored_run(RunRecord&& record) {
  return {std::move(record.run),     std::move(record.sweep),  record.status,
          std::move(record.reason),  std::move(record.host),   std::move(record.version),
          record.finished_unix_ns,   record.cpu};
}

}  // namespace

Result<std::unique_ptr<ResultsStore>> SqlStore::create(std::unique_ptr<SqlDatabase> database) {
  std::unique_ptr<SqlStore> store(new SqlStore(std::move(database)));
  BUBBLESIM_ASSIGN_OR_RETURN(store->columns_, columns_of(*store->database_, "rows"));
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

Result<std::unordered_set<std::string>> SqlStore::done() {
  std::unordered_set<std::string> keys;
  BUBBLESIM_RETURN_IF_ERROR(
      database_->query("SELECT key FROM runs WHERE status = 'done'",
                       [&](const SqlRow& row) { keys.insert(row.text(0)); }));
  return keys;
}

Result<void> SqlStore::each_row(const RowFilter& filter,
                                const std::function<void(const StoredRow&)>& visit) {
  const auto visit_run = [&](StoredRecord& stored) -> Result<void> {
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
  return read_records(*database_, filter, {.rows = true}, columns_, visit_run);
}

Result<void> SqlStore::each_run(const RowFilter& filter,
                                const std::function<void(const StoredRun&)>& visit) {
  const bool by_row = !filter.policies.empty() || !filter.fillers.empty();
  const auto visit_run = [&](StoredRecord& stored) -> Result<void> {
    bool wanted = !by_row;
    for (const observe::ResultRow& row : stored.record.rows) {
      wanted = wanted || passes(row, filter);
    }
    if (wanted) visit(stored_run(std::move(stored.record)));
    return {};
  };
  return read_records(*database_, filter, {.rows = by_row}, columns_, visit_run);
}

Result<std::optional<observe::LatencyHistogram>> SqlStore::latency(const std::string& key,
                                                                   std::uint32_t policy,
                                                                   std::uint32_t filler) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto statement,
      database_->prepare("SELECT histogram FROM latencies JOIN runs ON runs.run = latencies.run "
                         "WHERE key = $1 AND policy_index = $2 AND filler_index = $3"));
  const SqlParameters parameters{
      3, {std::string_view(key), std::int64_t{policy}, std::int64_t{filler}}};
  std::optional<std::vector<std::uint8_t>> bytes;
  BUBBLESIM_RETURN_IF_ERROR(database_->run(
      statement, parameters, [&](std::size_t, const SqlRow& row) { bytes = row.bytes(0); }));
  if (!bytes) return std::optional<observe::LatencyHistogram>();
  BUBBLESIM_ASSIGN_OR_RETURN(auto histogram, histogram_of(*database_, key, *bytes));
  return std::optional(std::move(histogram));
}

Result<void> SqlStore::each_record(const RowFilter& filter,
                                   const std::function<void(const RunRecord&)>& visit) {
  const auto visit_record = [&](StoredRecord& stored) -> Result<void> {
    if (static_cast<std::int64_t>(record_digest(stored.record)) != stored.digest) {
      return fail(database_->name(), "run " + stored.record.run.key,
                  "does not have the check sum that it was stored with: is damaged");
    }
    visit(stored.record);
    return {};
  };
  const RecordParts all{.settings = true, .rows = true, .latencies = true, .counters = true};
  return read_records(*database_, filter, all, columns_, visit_record);
}

Result<void> SqlStore::check() {
  BUBBLESIM_RETURN_IF_ERROR(database_->check());
  return each_record([](const RunRecord&) {});
}

Result<std::unique_ptr<ResultsStore>> open_store(const std::string& where, StoreAccess access) {
  if (where.empty()) return fail("found no name of a store, expected a file or postgresql://...");
  bool postgres = false;
  for (const std::string_view scheme : kPostgres) postgres |= where.starts_with(scheme);
  if (!postgres && where.find("://") != std::string::npos) {
    return fail(where, {}, "is no kind of store; expected a file or postgresql://...");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto database, postgres ? open_postgres(where, access) : open_sqlite(where, access));
  BUBBLESIM_RETURN_IF_ERROR(prepare_schema(*database, access));
  return SqlStore::create(std::move(database));
}

}  // namespace bubblesim::run
