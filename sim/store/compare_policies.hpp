// Compares policies with a baseline policy, over the runs of a store.
//
// Runs are paired: the same sweep, the same seed, and the same settings except of policies, so that
// both runs had the same arrivals and differ only by the policy. The interval is that of the mean
// of the paired differences by Student's t with pairs - 1 degrees of freedom: A. M. Law, Simulation
// Modeling and Analysis, 5th edition 2015, section 10.2.1 (paired t; common random numbers are
// section 11.2). Each interval has the given confidence by itself: there is no correction for
// multiple comparisons. Of several points of a sweep, each has the same weight.
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

// Labels of policies when several runs are compared: the policy's name, with the parameters in
// which policies of that name differ.

class PolicyLabels {
 public:
  /// `parameters`: "name=value;name=value", as in the column policy_parameters.
  void see(const std::string& policy, const std::string& parameters);
  /// "mps", or "mps(filler_percentage=30)" if the policies seen under this name differ in that
  /// parameter. Precondition: see() was called with it.
  [[nodiscard]] std::string label(const std::string& policy, const std::string& parameters) const;

 private:
  std::map<std::string, std::set<std::string>> seen_;
};

/// Whether the setting belongs to the compared point: it sets neither a policy nor the seed.
[[nodiscard]] bool is_of_point(const Setting& setting);

enum class ComparisonGroup : std::uint8_t {
  kAll,    ///< one interval over all points
  kPoint,  ///< one interval for each point, over its seeds
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
  std::string filler;            ///< empty: a metric of the whole run
  std::vector<Setting> point;    ///< of kPoint
  std::string policy;            ///< its PolicyLabels::label
  std::uint64_t pairs = 0;
  std::uint64_t unpaired = 0;    ///< values without a pair: only the policy has one
  std::uint64_t lower_bounds = 0;  ///< pairs with a latency that is only a lower bound
  std::uint64_t overloaded = 0;    ///< pairs with a latency of an overloaded filler
  std::set<std::string> losses;    ///< losses in the inputs of any run of a pair
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

/// Whether that column of the row is a latency's lower bound.
[[nodiscard]] bool is_lower_bound(const observe::ResultRow& row, std::string_view column);

/// Whether the column is a latency and the row's filler falls behind (OUTPUTS.md, Overloaded). Such
/// a latency depends on the length of the run, and tables show "overloaded" instead.
[[nodiscard]] bool is_overloaded(const observe::ResultRow& row, std::string_view column);

/// Index of a column in result_columns(), or a fault with the nearest name.
[[nodiscard]] Result<std::size_t> find_column(std::string_view name);

/// Fault: it is not in (0, 1).
[[nodiscard]] Result<void> check_confidence(double confidence);

[[nodiscard]] Result<Comparison> compare_policies(ResultsStore& store,
                                                  const CompareOptions& options);

/// Half the width of the interval for the mean of `differences`; at least two of them.
[[nodiscard]] double paired_half_width(std::span<const double> differences, double confidence);

}  // namespace bubblesim::store
