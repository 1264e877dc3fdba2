// What the words of a time_slices row say: the rate of requests, and what a metric is of.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/result.hpp"
#include "sim/validate/sharing_table.hpp"

namespace bubblesim::validate {

/// Requests a second: "30.7/s", "30.7 requests/s", "30 req/s", "30 per second", "30 rps". Nothing
/// if the words name no rate. Fault: one that is no number, two of them, or one that is not from
/// 0.1 to 1e6.
[[nodiscard]] Result<std::optional<double>> rate_in(std::string_view words);

struct SliceMetric {
  SharingFigure figure;
  double ms = 1;      ///< of the table's unit
  bool rate = false;  ///< samples a second, whose inverse is a time
};

/// "samples_per_s"; "mean", "median", "median_iteration" or a percentile ("p95", "p99.9"), in "_ms"
/// or "_s". Nothing of another metric.
[[nodiscard]] std::optional<SliceMetric> slice_metric(std::string_view metric);

}  // namespace bubblesim::validate
