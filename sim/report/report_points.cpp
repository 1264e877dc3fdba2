// Rows of seeds become points.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/report/report_parts.hpp"
#include "sim/store/policy_labels.hpp"

namespace bubblesim::report {
namespace {

std::vector<const std::vector<store::Setting>*> settings_of_sweep(const ReportSource& source,
                                                           const ReportData& data,
                                                           std::uint32_t sweep) {
  std::vector<const std::vector<store::Setting>*> all;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    if (data.runs[run].sweep == sweep) all.push_back(&source.settings[run]);
  }
  return all;
}

class Points {
 public:
  Points(const ReportSource& source, ReportData& data)
      : source_(source), data_(data), labels_(data.sweeps.size()) {
    for (const PageRow& row : source.rows) {
      labels_[data.runs[row.run].sweep].see(row.policy, row.parameters);
    }
  }

  void take(const PageRow& row) {
    const ReportRun& run = data_.runs[row.run];
    const ReportSweep& sweep = data_.sweeps[run.sweep];
    std::vector<AxisPlace> values;
    for (const ReportAxis& axis : sweep.axes) {
      values.push_back(axis.place_of(source_.settings[row.run]));
    }
    const std::uint32_t policy = policy_of(row);
    const std::uint32_t filler = place_in(data_.fillers, row.filler);
    const auto [place, fresh] =
        points_.try_emplace({run.sweep, policy, filler, values}, data_.points.size());
    if (fresh) {
      data_.points.push_back({run.sweep, policy, filler, values, {}, {}, {}, {}});
      rows_.emplace_back();
    }
    ReportPoint& point = data_.points[place->second];
    const bool seen = std::any_of(point.runs.begin(), point.runs.end(), [&](std::uint32_t other) {
      return data_.runs[other].seed == run.seed;
    });
    if (seen) {
      ++data_.repeated;
      return;
    }
    point.runs.push_back(row.run);
    if (!row.losses.empty()) point.losses.insert(row.losses);
    rows_[place->second].push_back(&row);
  }

  void finish() {
    for (std::size_t i = 0; i < data_.points.size(); ++i) finish(data_.points[i], rows_[i]);
  }

 private:
  std::uint32_t policy_of(const PageRow& row) {
    const auto [place, fresh] = policies_.try_emplace(
        {row.policy, row.parameters}, static_cast<std::uint32_t>(data_.policies.size()));
    if (fresh) data_.policies.push_back({row.policy, row.parameters, row.oracle});
    const std::uint32_t sweep = data_.runs[row.run].sweep;
    if (labelled_.insert({sweep, place->second}).second) {
      data_.sweeps[sweep].labels.emplace_back(place->second,
                                              labels_[sweep].label(row.policy, row.parameters));
    }
    return place->second;
  }

  void finish(ReportPoint& point, const std::vector<const PageRow*>& rows) const {
    for (const PageRow* row : rows) point.by_run.push_back(row->figures);
    for (std::size_t figure = 0; figure < report_metrics().size(); ++figure) {
      std::vector<std::optional<double>> values;
      std::uint32_t bounds = 0;
      std::uint32_t overloaded = 0;
      for (const PageRow* row : rows) {
        values.push_back(row->figures[figure]);
        bounds += values.back() && row->lower_bounds[figure] ? 1U : 0U;
        overloaded += values.back() && row->overloaded[figure] ? 1U : 0U;
      }
      point.figures.push_back(mean_over_seeds(values, data_.confidence));
      point.figures.back().lower_bounds = bounds;
      point.figures.back().overloaded = overloaded;
    }
  }

  const ReportSource& source_;
  ReportData& data_;
  std::vector<store::PolicyLabels> labels_;  // by sweep
  std::map<std::pair<std::string, std::string>, std::uint32_t> policies_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> labelled_;  // sweep and policy
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::vector<AxisPlace>>,
           std::size_t>
      points_;
  std::vector<std::vector<const PageRow*>> rows_;  // by point
};

}  // namespace

void add_points(ReportSource& source, ReportData& data) {
  for (std::uint32_t sweep = 0; sweep < data.sweeps.size(); ++sweep) {
    data.sweeps[sweep].axes = axes_of(settings_of_sweep(source, data, sweep));
  }
  Points points(source, data);
  for (const PageRow& row : source.rows) points.take(row);
  points.finish();
}

}  // namespace bubblesim::report
