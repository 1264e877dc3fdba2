// Fits the constants of a node's ring all-reduce to measured tables.
//
// Fitted: the base and hop of LL128 and Simple, LL128's share of the port, the port's bandwidth,
// the copies that cross no link, and the quantum of a channel: eight constants of mechanisms, none
// of a single table. Half of the sizes of the tables of 2, 4 and 8 GPUs take part; the other half
// and all other tables judge. Each octave of sizes of each table weighs the same. Levenberg and
// Marquardt on the logarithms of the constants, residuals relative, large ones damped.
//
// The tables may reach below CollectiveSpec::low_latency_below; the fit then uses LL's constants
// as they stand.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/fit/fitted_file.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/validate/all_reduce_table.hpp"

namespace bubblesim::fit {

/// Relative errors of one table; a mean of nothing is 0.
struct AllReduceErrors {
  std::uint32_t gpus = 0;
  std::size_t fit_rows = 0;
  std::size_t judge_rows = 0;
  double fit_mean = 0;     ///< mean absolute error of the rows that took part
  double judge_mean = 0;   ///< of those that did not
  double octave_mean = 0;  ///< of all, each octave of sizes weighing the same
  double worst = 0;
};

struct AllReduceFit {
  hardware::ClusterSpec spec;  ///< the starting one with the fitted constants
  std::vector<FittedConstant> constants;
  std::vector<AllReduceErrors> tables;
};

/// Errors of `spec` as it stands. Precondition: the tables are of one node of the cluster.
[[nodiscard]] std::vector<AllReduceErrors> judge_all_reduce(
    std::span<const validate::AllReduceTable> tables, const hardware::ClusterSpec& spec);

/// Fault: no row takes part, or a table has more GPUs than a node.
[[nodiscard]] Result<AllReduceFit> fit_all_reduce(std::span<const validate::AllReduceTable> tables,
                                                  const hardware::ClusterSpec& start);

}  // namespace bubblesim::fit
