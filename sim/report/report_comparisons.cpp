// Policies against a baseline, sweep by sweep, as `bubblesim results compare` computes them.
#include <utility>

#include "sim/report/report_parts.hpp"

namespace bubblesim::report {
namespace {

const std::vector<std::string>& compared_metrics() {
  static const std::vector<std::string> names{
      "training_normalised_fraction", "filler_requests_per_s", "latency_p95_ms",
      "bubble_recovered_fraction"};
  return names;
}

bool has_points_of(const ReportData& data, std::uint32_t sweep) {
  for (const ReportPoint& point : data.points) {
    if (point.sweep == sweep) return true;
  }
  return false;
}

/// Every set of parameters would be a policy of its own.
bool varies_policies(const ReportSweep& sweep) {
  for (const ReportAxis& axis : sweep.axes) {
    if (!swept_parameter({axis.pointer, {}}).empty()) return true;
  }
  return false;
}

}  // namespace

Result<void> add_comparisons(store::ResultsStore& store, const ReportOptions& options,
                             ReportData& data) {
  for (std::uint32_t index = 0; index < data.sweeps.size(); ++index) {
    ReportSweep& sweep = data.sweeps[index];
    if (!has_points_of(data, index) || varies_policies(sweep)) continue;
    store::CompareOptions compare;
    compare.metrics = compared_metrics();
    compare.baseline = options.baseline;
    compare.confidence = options.confidence;
    compare.filter = options.filter;
    compare.filter.sweeps = {sweep.name};
    for (const auto group : {store::ComparisonGroup::kAll, store::ComparisonGroup::kPoint}) {
      if (group == store::ComparisonGroup::kPoint && sweep.axes.empty()) continue;
      compare.group = group;
      BUBBLESIM_ASSIGN_OR_RETURN(store::Comparison compared,
                                 store::compare_policies(store, compare));
      sweep.baseline = compared.baseline;
      if (group == store::ComparisonGroup::kPoint && compared.lines.size() > kReportComparisons) {
        sweep.comparisons_left_out = compared.lines.size();
        continue;
      }
      for (store::PolicyComparison& line : compared.lines) {
        ReportComparison& shown = sweep.comparisons.emplace_back();
        if (group == store::ComparisonGroup::kPoint) {
          for (const ReportAxis& axis : sweep.axes) {
            shown.values.push_back(axis.place_of(line.point));
          }
        }
        shown.line = std::move(line);
      }
    }
  }
  return {};
}

}  // namespace bubblesim::report
