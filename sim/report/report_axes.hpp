// A sweep's variations as axes of a report: each axis's values, in order, and the choices for a
// reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/store/results_store.hpp"
#include "sim/store/run_record.hpp"
#include "sim/sweep/remaining.hpp"

namespace bubblesim::report {

/// Index into an axis's values or choices; kNoValue: the run does not set it.
using AxisPlace = std::int32_t;
inline constexpr AxisPlace kNoValue = -1;

struct ReportAxis {
  std::string pointer;
  std::string unit;                  ///< "ms" if values are spans of time; else empty
  std::vector<std::string> values;   ///< as JSON; ascending if numbers, else as first seen
  std::vector<double> numbers;       ///< of the values; empty: they are not numbers
  std::vector<std::string> choices;  ///< of a filter: the values, or ranges of them
  std::vector<AxisPlace> choice_of;  ///< by value
  std::unordered_map<std::string, AxisPlace> places;  ///< of values

  [[nodiscard]] AxisPlace place_of(std::span<const store::Setting> settings) const;
};

/// With more numbers than this, the choices are kAxisRanges ranges of about equally many values.
inline constexpr std::size_t kMostChoices = 24;
inline constexpr std::size_t kAxisRanges = 8;

/// The axes of runs with these settings, in the order in which their pointers first appear.
[[nodiscard]] std::vector<ReportAxis> axes_of(
    std::span<const std::vector<store::Setting>* const> runs);

/// Name of the parameter in a setting such as "/policies/0/parameters/window"; else empty.
[[nodiscard]] std::string swept_parameter(const store::Setting& setting);

// The figures of a report, chosen from the columns of OUTPUTS.md: titles, units, which direction is
// better, and which two are traded against each other.

/// How the number is shown; the page's data keep the column's own unit.
enum class MetricForm : std::uint8_t {
  kPlain,
  kPercent,  ///< of a fraction
  kBytes,
};

struct ReportMetric {
  std::string_view column;  ///< of observe::result_columns()
  std::string_view title;
  std::string_view unit;    ///< as shown; empty: no unit
  sweep::Better better = sweep::Better::kMore;
  MetricForm form = MetricForm::kPlain;
};

[[nodiscard]] std::span<const ReportMetric> report_metrics();

/// Index of a column in report_metrics(). Precondition: it is one of them.
[[nodiscard]] std::size_t metric_place(std::string_view column);

/// Two figures that are traded against each other; indices into report_metrics().
struct ReportTrade {
  std::string_view title;
  std::size_t x = 0;
  std::size_t y = 0;
};

/// The trades in the order in which a page offers them.
[[nodiscard]] std::span<const ReportTrade> report_trades();

/// A figure of a row. Nothing: not measured, or not finite.
[[nodiscard]] std::optional<double> metric_of(const observe::ResultRow& row, std::size_t metric);

// Points that no other point beats in both of two figures.

struct TradePoint {
  std::optional<double> x;
  std::optional<double> y;
};

/// Indices of the points that no other point beats, by being at least as good in both figures and
/// better in one. Equal points are on the front together. Points with a figure that is missing or
/// not finite are not on the front and beat none. Indices come in the order of x, then of the
/// index. n log n.
[[nodiscard]] std::vector<std::size_t> pareto_front(std::span<const TradePoint> points,
                                                    sweep::Better better_x, sweep::Better better_y);

}  // namespace bubblesim::report
