// bubblesim results compare: policies against one of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <set>

#include "sim/app/app.hpp"
#include "sim/app/results_text.hpp"
#include "sim/base/nearest.hpp"
#include "sim/store/compare_policies.hpp"
#include "sim/store/store_export.hpp"

namespace bubblesim::app {
namespace {

Line comparison_line(const store::PolicyComparison& line, bool for_people) {
  const auto number = [&](double value) -> std::string {
    if (for_people && line.overloaded > 0) return "overloaded";
    return for_people ? short_number(value) : store::cell_text(value);
  };
  const bool paired = line.pairs > 0;
  Line cells{line.metric, line.filler, assignments_text(line.point),
             line.policy + (for_people && !line.losses.empty() ? " !" : ""),
             std::to_string(line.pairs), paired ? number(line.mean) : "",
             paired ? number(line.baseline_mean) : "", paired ? number(line.difference) : ""};
  if (line.half_width && !(for_people && line.overloaded > 0)) {
    cells.push_back(number(line.difference - *line.half_width));
    cells.push_back(number(line.difference + *line.half_width));
    cells.emplace_back(std::abs(line.difference) > *line.half_width ? "yes" : "no");
  } else {
    cells.insert(cells.end(), {"", "", ""});
  }
  cells.push_back(std::to_string(line.unpaired));
  cells.push_back(std::to_string(line.lower_bounds));
  cells.push_back(std::to_string(line.overloaded));
  if (!for_people) cells.push_back(fmt::format("{}", fmt::join(line.losses, "; ")));
  return cells;
}

}  // namespace

ExitCode compare_results(const ResultsArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto opened, open_filtered(arguments));
  store::CompareOptions options;
  options.metrics = arguments.metrics;
  options.baseline = arguments.baseline;
  options.confidence = arguments.confidence;
  options.filter = opened.filter;
  if (arguments.by_point) options.group = store::ComparisonGroup::kPoint;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto compared, store::compare_policies(*opened.store, options));
  const bool for_people = !arguments.json && !arguments.csv;
  std::vector<Line> lines{{"metric", "filler", "point", "policy", "pairs", "mean",
                           "baseline_mean", "difference", "low", "high", "differs", "unpaired",
                           "lower_bounds", "overloaded"}};
  if (!for_people) lines.front().emplace_back("losses");
  std::set<std::string> lost;
  for (const store::PolicyComparison& line : compared.lines) {
    lines.push_back(comparison_line(line, for_people));
    lost.insert(line.losses.begin(), line.losses.end());
  }
  if (arguments.csv) {
    print(csv_table(lines));
  } else if (arguments.json) {
    fmt::print("{{\"baseline\": {}, \"confidence\": {}, \"comparisons\": {}}}\n",
               quote_found(compared.baseline), compared.confidence, json_table(lines));
  } else {
    fmt::print("against {}; low and high: {:g} % interval of the mean paired difference\n\n",
               compared.baseline, 100 * compared.confidence);
    print(aligned(lines));
    for (const std::string& losses : lost) fmt::print("! {}\n", losses);
  }
  return kExitOk;
}

}  // namespace bubblesim::app
