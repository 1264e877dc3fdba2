// Compares simulated with measured results: a cell for every figure of both sides, and a cell with
// a note for every figure that one side lacks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/validate/match_reports.hpp"

namespace bubblesim::validate {

enum class MeasuredMetric : std::uint8_t {
  kSlowdown,          ///< %: mean iteration / mean iteration of the job alone, same side, less 1
  kIteration,         ///< ms: mean
  kFillerThroughput,  ///< requests a second
  kFillerOfOwnGpu,    ///< %: throughput / throughput on a GPU of its own, same side
  kP50,               ///< ms, of latencies
  kP95,
  kP99,
  kAloneIteration,    ///< ms: mean of the job alone (policy "alone")
  kFillerAlone,       ///< requests a second of a filler with a GPU of its own (policy "alone")
};

inline constexpr std::array kAllMeasuredMetrics = {
    MeasuredMetric::kSlowdown,         MeasuredMetric::kIteration,
    MeasuredMetric::kFillerThroughput, MeasuredMetric::kFillerOfOwnGpu,
    MeasuredMetric::kP50,              MeasuredMetric::kP95,
    MeasuredMetric::kP99,              MeasuredMetric::kAloneIteration,
    MeasuredMetric::kFillerAlone};

enum class RowOutcome : std::uint8_t {
  kPredicted,
  kStated,  ///< not judged, for a stated reason
  kFailed,  ///< not predicted, though it should be
};

/// "training_slowdown", "latency_p95".
[[nodiscard]] std::string_view metric_name(MeasuredMetric metric);
/// The unit of the values: "%", "ms", "1/s".
[[nodiscard]] std::string_view metric_unit(MeasuredMetric metric);
/// The title of a column: "p95, ms".
[[nodiscard]] std::string_view metric_title(MeasuredMetric metric);
/// Errors of shares are differences in percentage points; all others are relative, in percent.
[[nodiscard]] bool error_in_points(MeasuredMetric metric);
/// "points" or "%".
[[nodiscard]] std::string_view error_unit(MeasuredMetric metric);

struct MeasuredCell {
  RowRole role = RowRole::kJudge;
  std::string config;
  std::string policy;
  std::string filler;  ///< empty: the training job
  std::optional<MeasuredMetric> metric;  ///< nothing: all metrics of the policy or config
  double measured = 0;  ///< median over the repetitions
  double measured_low = 0;
  double measured_high = 0;
  std::size_t repetitions = 0;  ///< repetitions of the measurement with this figure
  double simulated = 0;         ///< median over seeds
  RowOutcome outcome = RowOutcome::kPredicted;
  std::string note;  ///< why it is not judged
  bool fake = false;  ///< a repetition was measured on a fake GPU

  /// Simulated against measured, in error_unit(). Precondition: predicted.
  [[nodiscard]] double error() const;
  /// "pair-a/mps/encoder".
  [[nodiscard]] std::string name() const;
};

/// Cells come in the order of `matched`: first baselines alone, then by policy and filler. Cells
/// without a judgement are
///  - stated: figures that were simulated but not measured, lower bounds, fillers that ran on
///    neither side, policies that admit no filler on either side (training is the job alone);
///  - failed: figures that were measured but not simulated; a throughput measured as zero and
///    simulated as more.
[[nodiscard]] std::vector<MeasuredCell> compare_measured(const std::vector<MatchedReports>& matched,
                                                         const MeasuredRoles& roles);

}  // namespace bubblesim::validate
