// Fronts for every choice that a reader can make on a sweep's axes, and curves along each axis.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "sim/report/pareto_front.hpp"
#include "sim/report/report_parts.hpp"

namespace bubblesim::report {
namespace {

/// Points of a sweep by filler.
std::map<std::uint32_t, std::vector<std::uint32_t>> by_filler(const ReportData& data,
                                                              std::uint32_t sweep) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> groups;
  for (std::uint32_t i = 0; i < data.points.size(); ++i) {
    if (data.points[i].sweep == sweep) groups[data.points[i].filler].push_back(i);
  }
  return groups;
}

std::vector<std::uint32_t> front_of(const ReportData& data, const ReportTrade& trade,
                                    const std::vector<std::uint32_t>& points) {
  std::vector<TradePoint> candidates;
  for (const std::uint32_t point : points) {
    const bool oracle = data.policies[data.points[point].policy].oracle;
    const auto& figures = data.points[point].figures;
    candidates.push_back(oracle ? TradePoint{}
                                : TradePoint{figures[trade.x].mean, figures[trade.y].mean});
  }
  std::vector<std::uint32_t> front;
  const auto metrics = report_metrics();
  for (const std::size_t i :
       pareto_front(candidates, metrics[trade.x].better, metrics[trade.y].better)) {
    front.push_back(points[i]);
  }
  return front;
}

/// Sets of axes that may be chosen on: none first, then few before many.
std::vector<std::uint32_t> axis_sets(std::size_t axes) {
  constexpr std::size_t kMostAxes = 10;
  std::vector<std::uint32_t> sets(std::size_t{1} << std::min(axes, kMostAxes));
  std::iota(sets.begin(), sets.end(), 0U);
  std::stable_sort(sets.begin(), sets.end(), [](std::uint32_t a, std::uint32_t b) {
    return std::popcount(a) < std::popcount(b);
  });
  return sets;
}

std::vector<AxisPlace> choices_of(const ReportSweep& sweep, const ReportPoint& point,
                                  std::uint32_t set) {
  std::vector<AxisPlace> choices(sweep.axes.size(), kNoValue);
  for (std::size_t axis = 0; axis < choices.size(); ++axis) {
    const bool chosen = axis < 32 && ((set >> axis) & 1U) != 0;
    if (!chosen || point.values[axis] == kNoValue) continue;
    choices[axis] = sweep.axes[axis].choice_of[static_cast<std::size_t>(point.values[axis])];
  }
  return choices;
}

void add_fronts_of(const ReportData& data, std::uint32_t filler,
                   const std::vector<std::uint32_t>& points, ReportSweep& sweep) {
  for (const std::uint32_t set : axis_sets(sweep.axes.size())) {
    std::map<std::vector<AxisPlace>, std::vector<std::uint32_t>> groups;
    for (const std::uint32_t point : points) {
      const auto choices = choices_of(sweep, data.points[point], set);
      // A run that does not set a chosen axis is of no choice on it.
      const auto chosen = static_cast<int>(std::count_if(
          choices.begin(), choices.end(), [](AxisPlace place) { return place != kNoValue; }));
      if (chosen == std::popcount(set)) groups[choices].push_back(point);
    }
    for (const auto& [choices, members] : groups) {
      if (members.size() < 2) continue;
      for (std::uint32_t trade = 0; trade < report_trades().size(); ++trade) {
        auto front = front_of(data, report_trades()[trade], members);
        if (front.empty()) continue;
        if (sweep.fronts.size() >= kReportFronts) {
          ++sweep.fronts_left_out;
          continue;
        }
        sweep.fronts.push_back({filler, trade, choices, std::move(front)});
      }
    }
  }
}

void add_curves_along(const ReportData& data, std::uint32_t filler, std::uint32_t axis,
                      const std::vector<std::uint32_t>& points, ReportSweep& sweep) {
  std::map<std::pair<std::uint32_t, std::vector<AxisPlace>>, std::vector<std::uint32_t>> curves;
  for (const std::uint32_t index : points) {
    const ReportPoint& point = data.points[index];
    if (point.values[axis] == kNoValue) continue;
    std::vector<AxisPlace> others = point.values;
    others[axis] = kNoValue;
    curves[{point.policy, others}].push_back(index);
  }
  for (auto& [key, members] : curves) {
    if (members.size() < 2) continue;
    // Places of values rise with their numbers.
    std::sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
      return data.points[a].values[axis] < data.points[b].values[axis];
    });
    sweep.curves.push_back({filler, key.first, axis, members});
  }
}

}  // namespace

void add_fronts(ReportData& data) {
  for (std::uint32_t sweep = 0; sweep < data.sweeps.size(); ++sweep) {
    for (const auto& [filler, points] : by_filler(data, sweep)) {
      add_fronts_of(data, filler, points, data.sweeps[sweep]);
    }
  }
}

void add_curves(ReportData& data) {
  for (std::uint32_t index = 0; index < data.sweeps.size(); ++index) {
    ReportSweep& sweep = data.sweeps[index];
    for (const auto& [filler, points] : by_filler(data, index)) {
      for (std::uint32_t axis = 0; axis < sweep.axes.size(); ++axis) {
        if (!sweep.axes[axis].numbers.empty()) add_curves_along(data, filler, axis, points, sweep);
      }
    }
  }
}

}  // namespace bubblesim::report
