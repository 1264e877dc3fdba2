// The runs of a plan that a store lacks, the best result so far, and the estimated time of the
// rest, measured on some of the runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/store/results_store.hpp"
#include "sim/store/run_record.hpp"
#include "sim/sweep/execute.hpp"

namespace bubblesim::sweep {

// The best result of a sweep so far, by one column of the results.

enum class Better : std::uint8_t { kMore, kLess };

/// The goal: the most (or least) of a column, among rows that keep enough of training.
struct BestGoal {
  std::string column = "filler_requests_per_s";  ///< a numeric one of observe::result_columns()
  Better better = Better::kMore;
  double training_kept = 0.95;  ///< least training_normalised_fraction; 0: any
};

/// "filler_requests_per_s", "min:latency_p95_ms", "max:...". Fault: no such column, with the
/// nearest, or one that holds text.
[[nodiscard]] Result<BestGoal> parse_best_goal(const std::string& text);

struct BestRun {
  double value = 0;
  std::string policy;
  std::string policy_parameters;
  std::string filler;
  std::vector<store::Setting> settings;
  std::uint64_t index = 0;
  std::string losses;  ///< losses in its inputs; may be empty
};

class BestSoFar {
 public:
  explicit BestSoFar(BestGoal goal);
  /// Of equal values the run of the lowest index counts, so that the same records in any order have
  /// the same best. Oracles are left out: no real system can run them.
  void look_at(const store::RunRecord& record);
  void look_at(const store::PlannedRun& run, const observe::ResultRow& row);
  [[nodiscard]] const std::optional<BestRun>& best() const { return best_; }
  /// If there is no best: the row that keeps most of training, with that share as its value.
  /// Nothing: no row has a value of the column.
  [[nodiscard]] const std::optional<BestRun>& closest() const { return closest_; }
  [[nodiscard]] const BestGoal& goal() const { return goal_; }

 private:
  BestGoal goal_;
  std::optional<BestRun> best_;
  std::optional<BestRun> closest_;
};

enum class FailedRuns : std::uint8_t {
  kKeep,   ///< the same inputs would fail again
  kRetry,
};

struct RemainingRuns {
  std::vector<store::PlannedRun> runs;   ///< to be done, in the order of the plan
  std::size_t done = 0;           ///< of the plan, done in the store
  std::size_t failed = 0;         ///< of the plan, failed in the store, and kept
  Duration cpu{};                 ///< of finished runs of the sweep, summed
  std::size_t timed = 0;          ///< the number of these runs
};

/// `best` sees the store's rows of the sweep and plan; once the plan has joined
/// (ResultsStore::join), also those stored by another sweep. Fault: the store's.
[[nodiscard]] Result<RemainingRuns> remaining_runs(const std::vector<store::PlannedRun>& plan,
                                                   const std::string& sweep,
                                                   store::ResultsStore& store, FailedRuns failed,
                                                   BestSoFar& best);

/// The cost of a sweep's measured runs.
struct RunCost {
  std::size_t runs = 0;  ///< measured ones
  Duration load{};       ///< to read and build the inputs that the first run shares with others
  Duration run{};        ///< mean, without loading, with its share of baselines
  Bytes shared;          ///< memory of the process with shared inputs
  Bytes run_bytes;       ///< the most that one run adds
  std::string failure;   ///< why the first failed run failed; empty: none did
};

/// Runs at most 8 runs, spread over the plan: the first one always, further ones while `budget`
/// lasts. Results are not kept. Memory is Linux's figure for the process (0: not known), correct
/// only if nothing else runs in it. Precondition: there is a run.
[[nodiscard]] RunCost measure_runs(const std::vector<store::PlannedRun>& plan,
                                   const policy::Registry& registry,
                                   const ExecuteOptions& options, Duration budget);

/// Most memory that the process has held at once; 0: not known.
[[nodiscard]] Bytes peak_memory();

}  // namespace bubblesim::sweep
