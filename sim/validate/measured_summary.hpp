// How far off each figure is over many cells, what it is held to, and whether policies come in the
// measured order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/validate/compare_measured.hpp"

namespace bubblesim::validate {

/// What the mean absolute error of a metric is held to.
struct MeasuredAim {
  MeasuredMetric metric;
  double bound;        ///< in error_unit()
  const char* source;  ///< the published figure that it is compared with
};

/// The aims are the project's own. Each stands beside the best published predictor of a like
/// figure that is known:
///  - Parallax (ACM TACO, DOI 10.1145/3827621): latency of training and inference on one GPU, mean
///    absolute error 4.33 % under time slicing and 6.12 % under MPS;
///  - Lumos (arXiv 2504.09307): replay of a training job, 3.3 % on average;
///  - LLMServingSim 2 (bench/examples/*/validation/summary.txt of its repository): p95 of an
///    inference server that has its GPU to itself, -2.4 to +0.6 %;
///  - PipeFill (arXiv 2410.07192): a slowdown of training below 2 % is the cost that is accepted.
[[nodiscard]] std::optional<MeasuredAim> measured_aim(MeasuredMetric metric);

/// Errors of one metric, in error_unit(): over all policies, and by policy.
struct MeasuredSummary {
  std::size_t rows = 0;
  double mean_absolute = 0;
  double bias = 0;          ///< the mean, with its sign
  double worst = 0;         ///< of the largest magnitude, with its sign
  std::string worst_label;  ///< of the first error that is so large
  MeasuredMetric metric = MeasuredMetric::kSlowdown;
  std::string policy;  ///< empty: all
  RowRole role = RowRole::kJudge;
  double p50 = 0;  ///< of absolute errors, nearest rank
  double p90 = 0;
  std::optional<MeasuredAim> aim;  ///< over all policies only
  bool fake = false;  ///< a cell was measured on a fake GPU: no aim is met by that, nor missed
  /// An error of the bound itself meets it, whatever rounding does.
  [[nodiscard]] bool met() const { return !aim || (!fake && mean_absolute <= aim->bound + 1e-9); }
};

/// Summaries by metric, role, policy. A metric that no cell predicts is left out.
[[nodiscard]] std::vector<MeasuredSummary> summarise_measured(
    const std::vector<MeasuredCell>& cells);

/// Whether one config's policies come in the measured order, of training throughput (the shortest
/// iteration first) or of one filler's (the most requests first).
struct MeasuredOrder {
  std::string config;
  std::string filler;        ///< empty: training
  std::size_t compared = 0;  ///< pairs of policies that measurements tell apart
  std::size_t ties = 0;      ///< pairs that measurements do not tell apart
  std::size_t wrong = 0;     ///< compared pairs that are simulated equal or the other way round
  std::string measured;      ///< "mps > tgs = specinf": ties between neighbours
  std::string simulated;
  /// Kendall's coefficient over compared pairs; 1: the measured order. No pair: 1.
  [[nodiscard]] double kendall() const;
};

/// The orders of policies in judged cells. Two policies tie if the ranges of their repetitions
/// meet, or if their medians are at most `tie` (relative) apart.
[[nodiscard]] std::vector<MeasuredOrder> order_measured(const std::vector<MeasuredCell>& cells,
                                                        double tie);

// Simulated against measured as text, CSV and JSON. The same cells give the same bytes.

/// The two sides of the comparison: devices, and where and when they were measured; with a warning
/// if a side is not what it should be.
[[nodiscard]] std::string measured_sides_text(const std::vector<MatchedReports>& matched);

/// A block a config: a line a policy and filler, each figure as measured, simulated and error; a
/// "~" follows measured figures whose repetitions are further than the error apart.
[[nodiscard]] std::string measured_cells_text(const std::vector<MeasuredCell>& cells);
/// What is not judged, by reason, failures first; empty if there is none.
[[nodiscard]] std::string measured_missing_text(const std::vector<MeasuredCell>& cells);
[[nodiscard]] std::string measured_summary_text(const std::vector<MeasuredSummary>& summaries);
[[nodiscard]] std::string measured_order_text(const std::vector<MeasuredOrder>& orders);

/// Columns and keys are in OUTPUTS.md.
[[nodiscard]] std::string measured_csv(const std::vector<MeasuredCell>& cells);
[[nodiscard]] std::string measured_json(const std::vector<MeasuredCell>& cells,
                                        const std::vector<MeasuredSummary>& summaries,
                                        const std::vector<MeasuredOrder>& orders);

}  // namespace bubblesim::validate
