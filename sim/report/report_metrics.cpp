#include "sim/report/report_metrics.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/store/compare_policies.hpp"

namespace bubblesim::report {
namespace {

constexpr std::array kMetrics = {
    ReportMetric{"training_normalised_fraction", "training kept", "%", sweep::Better::kMore,
                 MetricForm::kPercent},
    ReportMetric{"filler_requests_per_s", "filler throughput", "requests/s"},
    ReportMetric{"filler_normalised_fraction", "filler, of GPUs of its own", "%",
                 sweep::Better::kMore, MetricForm::kPercent},
    ReportMetric{"latency_p50_ms", "p50 latency", "ms", sweep::Better::kLess},
    ReportMetric{"latency_p95_ms", "p95 latency", "ms", sweep::Better::kLess},
    ReportMetric{"latency_p99_ms", "p99 latency", "ms", sweep::Better::kLess},
    ReportMetric{"ttft_p95_ms", "p95 time to first token", "ms", sweep::Better::kLess},
    ReportMetric{"tpot_p95_ms", "p95 time per output token", "ms", sweep::Better::kLess},
    ReportMetric{"output_tokens_per_s", "output tokens", "tokens/s"},
    ReportMetric{"goodput_per_s", "requests within limits", "requests/s"},
    ReportMetric{"kv_mean_fraction", "KV cache in use", "%", sweep::Better::kLess,
                 MetricForm::kPercent},
    ReportMetric{"bubble_recovered_fraction", "bubbles recovered", "%", sweep::Better::kMore,
                 MetricForm::kPercent},
    ReportMetric{"bubble_fraction", "bubbles", "% of time", sweep::Better::kLess,
                 MetricForm::kPercent},
    ReportMetric{"gpu_busy_fraction", "GPU busy", "% of time", sweep::Better::kMore,
                 MetricForm::kPercent},
    ReportMetric{"training_iterations_per_s", "training", "iterations/s"},
    ReportMetric{"training_goodput_per_s", "training, work done again aside", "iterations/s"},
    ReportMetric{"training_samples_per_s", "training samples", "samples/s"},
    ReportMetric{"requests_unfinished", "unfinished requests", "", sweep::Better::kLess},
    ReportMetric{"jobs_finished", "fill jobs finished", ""},
    ReportMetric{"jobs_mean_completion_s", "mean fill job completion", "s", sweep::Better::kLess},
    ReportMetric{"memory_high_water_bytes", "memory high water", "GB", sweep::Better::kLess,
                 MetricForm::kBytes},
    ReportMetric{"gpu_power_mean_w", "power of a GPU", "W", sweep::Better::kLess},
    ReportMetric{"training_iteration_energy_j", "energy of an iteration", "J",
                 sweep::Better::kLess},
    ReportMetric{"filler_request_energy_j", "energy of a request", "J", sweep::Better::kLess},
};

std::size_t place_of(std::string_view column) {
  std::size_t place = 0;
  while (place < kMetrics.size() && kMetrics[place].column != column) ++place;
  return place;
}

}  // namespace

std::span<const ReportMetric> report_metrics() { return kMetrics; }

std::size_t metric_place(std::string_view column) {
  const std::size_t place = place_of(column);
  BUBBLESIM_CHECK(place < kMetrics.size(), "no such figure in a report");
  return place;
}

std::span<const ReportTrade> report_trades() {
  static const std::array trades = {
      ReportTrade{"training kept against p95 latency", metric_place("latency_p95_ms"),
                  metric_place("training_normalised_fraction")},
      ReportTrade{"filler throughput against p95 latency", metric_place("latency_p95_ms"),
                  metric_place("filler_requests_per_s")},
      ReportTrade{"filler throughput against training kept",
                  metric_place("training_normalised_fraction"),
                  metric_place("filler_requests_per_s")},
  };
  return trades;
}

std::optional<double> metric_of(const observe::ResultRow& row, std::size_t metric) {
  static const std::vector<std::size_t> columns = [] {
    std::vector<std::size_t> all;
    for (const ReportMetric& known : kMetrics)
      all.push_back(store::find_column(known.column).value());
    return all;
  }();
  const observe::Cell& cell = row.cells[columns[metric]];
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&cell);
  if (number == nullptr || !std::isfinite(*number)) return std::nullopt;
  return *number;
}

std::string text_of(const observe::ResultRow& row, std::string_view column) {
  const auto* text = std::get_if<std::string>(&row.cells[store::find_column(column).value()]);
  return text == nullptr ? std::string() : *text;
}

}  // namespace bubblesim::report
