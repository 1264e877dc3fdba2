// The best result of a sweep so far, by one column of the results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/store/run_record.hpp"

namespace bubblesim::sweep {

enum class Better : std::uint8_t { kMore, kLess };

/// What is best: the most (or least) of a column, of rows that keep training.
struct BestGoal {
  std::string column = "filler_requests_per_s";  ///< a number of observe::result_columns()
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
  std::string losses;  ///< what its inputs have lost; empty: nothing
};

class BestSoFar {
 public:
  explicit BestSoFar(BestGoal goal);
  /// Keeps the run of the lowest index among equal values: the same records in any order have the
  /// same best. Oracles are left out: no system can run them.
  void look_at(const store::RunRecord& record);
  void look_at(const store::PlannedRun& run, const observe::ResultRow& row);
  [[nodiscard]] const std::optional<BestRun>& best() const { return best_; }
  /// If there is no best: the row that keeps most of training, which is its value. Nothing: no row
  /// has a value of the column.
  [[nodiscard]] const std::optional<BestRun>& closest() const { return closest_; }
  [[nodiscard]] const BestGoal& goal() const { return goal_; }

 private:
  BestGoal goal_;
  std::size_t column_ = 0;
  std::optional<BestRun> best_;
  std::optional<BestRun> closest_;
};

}  // namespace bubblesim::sweep
