// Keeps results: SQLite in one file by default, PostgreSQL through a connection string. Tables and
// columns: sim/observe/OUTPUTS.md, "Results store".
//
// A process has one writer object; several processes may write one store. Once add() has returned,
// its records are on disk, and a killed program does not lose them. A key is stored once. A run of
// several sweeps is stored under the first, and shown under each with that sweep's plan.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/store/run_record.hpp"

namespace bubblesim::store {

inline constexpr int kStoreSchemaVersion = 2;

enum class StoreAccess : std::uint8_t { kRead, kWrite };

/// The rows of a query; empty members restrict nothing.
struct RowFilter {
  std::vector<std::string> sweeps;
  std::vector<std::string> policies;
  std::vector<std::string> fillers;
  std::vector<Setting> settings;  ///< all must match; values compared as JSON
  std::string key{};              ///< the beginning of keys
};

// Used from one thread at a time; `visit` must not use the store that calls it.

/// A row with its run.
struct StoredRow {
  PlannedRun run;  ///< without its config
  std::string sweep;
  observe::ResultRow row;
};

class ResultsStore {
 public:
  virtual ~ResultsStore() = default;

  /// Stores the records in one transaction. A key stored as done stays; a failed one is replaced.
  /// Afterwards each run belongs to its record's sweep. Returns the number stored.
  [[nodiscard]] virtual Result<std::size_t> add(std::span<const RunRecord> records) = 0;
  /// Adds those of the runs that are stored, done or failed, to the sweep; runs that already belong
  /// to it stay. One transaction.
  [[nodiscard]] virtual Result<void> join(const std::string& sweep,
                                          std::span<const PlannedRun> runs) = 0;
  /// Keys of finished runs.
  [[nodiscard]] virtual Result<std::unordered_set<std::string>> done() = 0;
  /// Keys of runs that failed.
  [[nodiscard]] virtual Result<std::unordered_set<std::string>> failed() = 0;
  // The next four compare the read data with stored check sums.

  /// Visits rows in the order of sweep, index, policy, filler: the same store content gives the
  /// same order. A run is visited once for each of its sweeps.
  [[nodiscard]] virtual Result<void> each_row(
      const RowFilter& filter, const std::function<void(const StoredRow&)>& visit) = 0;
  /// Visits records without rows, latencies and counters.
  [[nodiscard]] virtual Result<void> each_run(
      const RowFilter& filter, const std::function<void(const RunRecord&)>& visit) = 0;
  [[nodiscard]] virtual Result<std::optional<observe::LatencyHistogram>> latency(
      const std::string& key, std::uint32_t policy, std::uint32_t filler) = 0;
  /// Whole records, for merging and export, in the order of sweep, index, key.
  [[nodiscard]] Result<void> each_record(const std::function<void(const RunRecord&)>& visit) {
    return each_record({}, visit);
  }
  /// Visits the runs that match the filter's sweeps, settings and key: once for each matching sweep
  /// or, if the filter names no sweep, once, under the sweep that stored the run.
  [[nodiscard]] virtual Result<void> each_record(
      const RowFilter& filter, const std::function<void(const RunRecord&)>& visit) = 0;
  /// Fault: the filter names a sweep, policy or filler that no run of the store has. If the store
  /// has each name but no row has all of them, there is no fault.
  [[nodiscard]] virtual Result<void> check_names(const RowFilter& filter) = 0;
  /// Reads everything: the database's own check, then the check sum of every record. The fault
  /// names the first damage.
  [[nodiscard]] virtual Result<void> check() = 0;
  /// Whether the file was deleted, moved or replaced since it was opened. The store can still be
  /// read, but not added to.
  [[nodiscard]] virtual bool is_gone() const { return false; }
};

/// Whether the text names a store for open_store(). Does not check the store itself.
[[nodiscard]] bool is_store(const std::string& where);

/// `where`: a path (SQLite), or "postgresql://..." . kWrite creates what is missing. Faults: no
/// store there, not a store, written by a newer version (found and supported), damaged, forbidden.
[[nodiscard]] Result<std::unique_ptr<ResultsStore>> open_store(const std::string& where,
                                                               StoreAccess access);

}  // namespace bubblesim::store
