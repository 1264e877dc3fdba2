// Policies against one of them, over the runs of a store.
//
// Runs are paired: the same sweep, the same settings but those of policies, the same seed, so that
// both had the same arrivals and differ by the policy alone. The interval is that of the mean of
// the paired differences by Student's t with pairs - 1 degrees of freedom: A. M. Law, Simulation
// Modeling and Analysis, 5th edition 2015, section 10.2.1 (paired t; common random numbers are
// section 11.2). Each interval holds alone with the confidence given: they are not widened for
// their number. Over several points of a sweep the mean is over the points as they were chosen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/store/results_store.hpp"

namespace bubblesim::store {

// What policies are called where several runs are put side by side: the name, with the parameters
// in which those of its name differ.

class PolicyLabels {
 public:
  /// `parameters`: "name=value;name=value", as the column policy_parameters has them.
  void see(const std::string& policy, const std::string& parameters);
  /// "mps", or "mps(filler_percentage=30)" where the parameters of the seen ones differ in that.
  /// Precondition: it was seen.
  [[nodiscard]] std::string label(const std::string& policy, const std::string& parameters) const;

 private:
  std::map<std::string, std::set<std::string>> seen_;
};

/// Is the setting one of the point at which policies are compared: neither a policy nor the seed?
[[nodiscard]] bool is_of_point(const Setting& setting);

enum class ComparisonGroup : std::uint8_t {
  kAll,    ///< one interval over all points
  kPoint,  ///< one for every point: over its seeds
};

struct CompareOptions {
  std::vector<std::string> metrics;  ///< numeric columns of OUTPUTS.md; default_metrics() if empty
  std::string baseline;              ///< a policy; empty: the first of the first run
  ComparisonGroup group = ComparisonGroup::kAll;
  double confidence = 0.95;          ///< in (0, 1)
  RowFilter filter;
};

/// A metric of a policy minus that of the baseline.
struct PolicyComparison {
  std::string metric;
  std::string filler;            ///< empty: the metric is of the whole run
  std::vector<Setting> point;    ///< of kPoint
  std::string policy;            ///< with the parameters that tell it from others of its name
  std::uint64_t pairs = 0;
  std::uint64_t unpaired = 0;    ///< values of the policy without one of the baseline
  std::uint64_t lower_bounds = 0;  ///< pairs with a latency that is only a lower bound
  std::uint64_t overloaded = 0;    ///< pairs with a latency of an overloaded filler
  std::set<std::string> losses;    ///< of any run of a pair: what its inputs have lost
  double mean = 0;               ///< of the policy, over the pairs
  double baseline_mean = 0;
  double difference = 0;         ///< mean of the differences
  std::optional<double> half_width;  ///< of the interval; nothing: fewer than 2 pairs
};

struct Comparison {
  std::string baseline;
  double confidence = 0.95;
  std::vector<PolicyComparison> lines;  ///< by metric, filler, point, policy as first seen
};

/// training_normalised_fraction, filler_normalised_fraction, latency_p95_ms.
[[nodiscard]] std::span<const std::string> default_metrics();

/// Is the column one of a filler, not of the whole run?
[[nodiscard]] bool is_of_filler(std::string_view column);

/// Is the latency in that column of the row a lower bound?
[[nodiscard]] bool is_lower_bound(const observe::ResultRow& row, std::string_view column);

/// Is it a latency of a filler that falls behind (OUTPUTS.md, Overloaded)? It then
/// measures the length of the run, and tables show the word instead.
[[nodiscard]] bool is_overloaded(const observe::ResultRow& row, std::string_view column);

/// Place of a column among result_columns(), or the fault that names the nearest.
[[nodiscard]] Result<std::size_t> find_column(std::string_view name);

[[nodiscard]] Result<Comparison> compare_policies(ResultsStore& store,
                                                  const CompareOptions& options);

/// Half the width of the interval of the mean of `differences`; at least 2 of them.
[[nodiscard]] double paired_half_width(std::span<const double> differences, double confidence);

}  // namespace bubblesim::store
