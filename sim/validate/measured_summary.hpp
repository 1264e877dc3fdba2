// The error of each figure over many cells, its aim, and whether policies come in the measured
// order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/validate/compare_measured.hpp"

namespace bubblesim::validate {

/// The aim for the mean absolute error of a metric.
struct MeasuredAim {
  MeasuredMetric metric;
  double bound;        ///< in error_unit()
  const char* source;  ///< the published figure behind it
};

/// The aims are the project's own. Each is compared with the best known published predictor of a
/// similar figure:
///  - Parallax (ACM TACO, DOI 10.1145/3827621): latency of training and inference on one GPU, mean
///    absolute error 4.33 % under time slicing and 6.12 % under MPS;
///  - Lumos (arXiv 2504.09307): replay of a training job, 3.3 % on average;
///  - LLMServingSim 2 (bench/examples/*/validation/summary.txt of its repository): p95 of an
///    inference server that has its GPU to itself, -2.4 to +0.6 %;
///  - PipeFill (arXiv 2410.07192) accepts a slowdown of training below 2 %.
[[nodiscard]] std::optional<MeasuredAim> measured_aim(MeasuredMetric metric);

/// Errors of one metric, in error_unit(): over all policies, and by policy.
struct MeasuredSummary {
  std::size_t rows = 0;
  double mean_absolute = 0;
  double bias = 0;          ///< the mean, with its sign
  double worst = 0;         ///< of the largest magnitude, with its sign
  std::string worst_label;  ///< of the first error of this magnitude
  MeasuredMetric metric = MeasuredMetric::kSlowdown;
  std::string policy;  ///< empty: all
  RowRole role = RowRole::kJudge;
  double p50 = 0;  ///< of absolute errors, nearest rank
  double p90 = 0;
  std::optional<MeasuredAim> aim;  ///< over all policies only
  bool fake = false;  ///< a cell was measured on a fake GPU: the aim is neither met nor missed
  /// An error equal to the bound meets it, despite rounding.
  [[nodiscard]] bool met() const { return !aim || (!fake && mean_absolute <= aim->bound + 1e-9); }
};

/// Summaries by metric, role, policy. Metrics without a predicted cell are left out.
[[nodiscard]] std::vector<MeasuredSummary> summarise_measured(
    const std::vector<MeasuredCell>& cells);

/// Whether one config's policies come in the measured order of training throughput (the shortest
/// iteration first) or of one filler's (the most requests first).
struct MeasuredOrder {
  std::string config;
  std::string filler;        ///< empty: training
  std::size_t compared = 0;  ///< pairs of policies whose measurements differ
  std::size_t ties = 0;      ///< pairs whose measurements do not differ
  std::size_t wrong = 0;     ///< compared pairs simulated as equal or reversed
  std::string measured;      ///< "mps > tgs = specinf": ties between neighbours
  std::string simulated;
  /// Kendall's coefficient over compared pairs; 1: the measured order. No pair: 1.
  [[nodiscard]] double kendall() const;
};

/// The orders of policies in judged cells. Two policies tie if the ranges of their repetitions
/// overlap, or if their medians are at most `tie` (relative) apart.
[[nodiscard]] std::vector<MeasuredOrder> order_measured(const std::vector<MeasuredCell>& cells,
                                                        double tie);

// Simulated against measured as text, CSV and JSON. The same cells give the same bytes.

/// The two sides of the comparison: devices, and place and date of measurements; with a note if a
/// side has reports of the other kind, or of a fake GPU.
[[nodiscard]] std::string measured_sides_text(const std::vector<MatchedReports>& matched);

/// A block for each config: a line for each policy and filler, with each figure as measured,
/// simulated and error; a "~" follows measured figures whose repetitions differ by more than the
/// error.
[[nodiscard]] std::string measured_cells_text(const std::vector<MeasuredCell>& cells);
/// Figures not judged, by reason, failures first; empty: none.
[[nodiscard]] std::string measured_missing_text(const std::vector<MeasuredCell>& cells);
[[nodiscard]] std::string measured_summary_text(const std::vector<MeasuredSummary>& summaries);
[[nodiscard]] std::string measured_order_text(const std::vector<MeasuredOrder>& orders);

/// OUTPUTS.md has the columns and keys.
[[nodiscard]] std::string measured_csv(const std::vector<MeasuredCell>& cells);
[[nodiscard]] std::string measured_json(const std::vector<MeasuredCell>& cells,
                                        const std::vector<MeasuredSummary>& summaries,
                                        const std::vector<MeasuredOrder>& orders);

}  // namespace bubblesim::validate
