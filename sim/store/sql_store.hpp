// The results store on an SQL database: the same statements for SQLite and PostgreSQL.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/store/results_store.hpp"
#include "sim/store/sql_database.hpp"
#include "sim/store/store_reader.hpp"

namespace bubblesim::store {

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

}  // namespace bubblesim::store
