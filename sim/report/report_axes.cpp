#include "sim/report/report_axes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "sim/base/check.hpp"
#include "sim/base/json.hpp"
#include "sim/base/time.hpp"
#include "sim/base/units.hpp"
#include "sim/store/compare_policies.hpp"
#include "sim/store/store_export.hpp"

namespace bubblesim::report {
namespace {

struct Number {
  double value = 0;
  bool span = false;
};

/// A finite number, or a span of time ("5ms") in milliseconds.
std::optional<Number> number_in(const std::string& json) {
  const Json value = Json::parse(json, nullptr, false);
  if (value.is_number()) {
    const auto number = value.get<double>();
    return std::isfinite(number) ? std::optional<Number>({number, false}) : std::nullopt;
  }
  if (!value.is_string()) return std::nullopt;
  const auto span = parse_duration(value.get_ref<const std::string&>());
  if (!span) return std::nullopt;
  return Number{to_seconds(*span) * 1000, true};
}

/// Sorts the values if all are numbers of one kind.
void order_numbers(ReportAxis& axis) {
  std::vector<std::pair<Number, std::string>> sorted;
  for (const std::string& value : axis.values) {
    const auto number = number_in(value);
    if (!number || (!sorted.empty() && number->span != sorted[0].first.span)) return;
    sorted.emplace_back(*number, value);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.first.value < b.first.value;
  });
  axis.values.clear();
  for (const auto& [number, value] : sorted) {
    axis.numbers.push_back(number.value);
    axis.values.push_back(value);
  }
  if (!sorted.empty() && sorted[0].first.span) axis.unit = "ms";
}

void offer_choices(ReportAxis& axis) {
  const std::size_t count = axis.values.size();
  if (axis.numbers.empty() || count <= kMostChoices) {
    axis.choice_of.resize(count);
    std::iota(axis.choice_of.begin(), axis.choice_of.end(), 0);
    for (const std::string& value : axis.values) axis.choices.push_back(store::setting_text(value));
    return;
  }
  for (std::size_t range = 0; range < kAxisRanges; ++range) {
    const std::size_t from = range * count / kAxisRanges;
    const std::size_t to = (range + 1) * count / kAxisRanges;
    axis.choices.push_back(store::setting_text(axis.values[from]) + " to " +
                           store::setting_text(axis.values[to - 1]));
    axis.choice_of.insert(axis.choice_of.end(), to - from, static_cast<AxisPlace>(range));
  }
}

}  // namespace

AxisPlace ReportAxis::place_of(std::span<const store::Setting> settings) const {
  for (const store::Setting& setting : settings) {
    if (setting.pointer != pointer) continue;
    const auto found = places.find(setting.value);
    return found == places.end() ? kNoValue : found->second;
  }
  return kNoValue;
}

std::string swept_parameter(const store::Setting& setting) {
  constexpr std::string_view kMiddle = "/parameters/";
  const std::size_t at = setting.pointer.find(kMiddle);
  if (!setting.pointer.starts_with("/policies/") || at == std::string::npos) return {};
  return setting.pointer.substr(at + kMiddle.size());
}

std::vector<ReportAxis> axes_of(std::span<const std::vector<store::Setting>* const> runs) {
  std::vector<ReportAxis> axes;
  std::unordered_map<std::string, std::size_t> seen;  // by pointer
  std::unordered_set<std::string> values_seen;        // pointer and value
  for (const auto* settings : runs) {
    for (const store::Setting& setting : *settings) {
      // The report averages over seeds, and a policy is a colour; its parameters are axes.
      if (!store::is_of_point(setting) && swept_parameter(setting).empty()) continue;
      const auto [axis, fresh] = seen.try_emplace(setting.pointer, axes.size());
      if (fresh) axes.emplace_back().pointer = setting.pointer;
      if (!values_seen.insert(setting.pointer + '\n' + setting.value).second) continue;
      axes[axis->second].values.push_back(setting.value);
    }
  }
  for (ReportAxis& axis : axes) {
    order_numbers(axis);
    offer_choices(axis);
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
      axis.places.emplace(axis.values[i], static_cast<AxisPlace>(i));
    }
  }
  return axes;
}

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

}  // namespace

std::span<const ReportMetric> report_metrics() { return kMetrics; }

std::size_t metric_place(std::string_view column) {
  const auto found = std::ranges::find(kMetrics, column, &ReportMetric::column);
  BUBBLESIM_CHECK(found != kMetrics.end(), "no such figure in a report");
  return static_cast<std::size_t>(found - kMetrics.begin());
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
  const auto number = store::number_of(row.cells[columns[metric]]);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

namespace {

/// Costs: less is better in both.
struct Candidate {
  double x = 0;
  double y = 0;
  std::size_t index = 0;
};

double cost(double value, sweep::Better better) {
  return better == sweep::Better::kLess ? value : -value;
}

}  // namespace

std::vector<std::size_t> pareto_front(std::span<const TradePoint> points, sweep::Better better_x,
                                      sweep::Better better_y) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [x, y] = points[i];
    if (!x || !y || !std::isfinite(*x) || !std::isfinite(*y)) continue;
    candidates.push_back({cost(*x, better_x), cost(*y, better_y), i});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.x, a.y, a.index) < std::tie(b.x, b.y, b.index);
  });
  // By rising x: a point stays if its y is less than that of all before it, or it equals the last.
  std::vector<Candidate> front;
  for (const Candidate& candidate : candidates) {
    const bool same = !front.empty() && candidate.x == front.back().x &&
                      candidate.y == front.back().y;
    if (front.empty() || same || candidate.y < front.back().y) front.push_back(candidate);
  }
  std::vector<std::size_t> indices;
  for (const Candidate& candidate : front) indices.push_back(candidate.index);
  std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
    return *points[a].x < *points[b].x;
  });
  return indices;
}

}  // namespace bubblesim::report
