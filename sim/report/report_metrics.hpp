// The figures that a report shows, as a choice of the columns of OUTPUTS.md: titles, units, which
// way is better, and which two are traded against each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/store/results_store.hpp"
#include "sim/sweep/best_run.hpp"

namespace bubblesim::report {

/// How people read the number; the page's data keep the column's own unit.
enum class MetricForm : std::uint8_t {
  kPlain,
  kPercent,  ///< of a fraction
  kBytes,
};

struct ReportMetric {
  std::string_view column;  ///< of observe::result_columns()
  std::string_view title;
  std::string_view unit;    ///< as shown; empty: a number without
  sweep::Better better = sweep::Better::kMore;
  MetricForm form = MetricForm::kPlain;
};

[[nodiscard]] std::span<const ReportMetric> report_metrics();

/// Place of a column among report_metrics(). Precondition: it is one of them.
[[nodiscard]] std::size_t metric_place(std::string_view column);

/// Two figures of which more of one costs the other; places among report_metrics().
struct ReportTrade {
  std::string_view title;
  std::size_t x = 0;
  std::size_t y = 0;
};

/// The trades in the order in which a page offers them.
[[nodiscard]] std::span<const ReportTrade> report_trades();

/// A figure of a row. Nothing: not measured, or not finite.
[[nodiscard]] std::optional<double> metric_of(const observe::ResultRow& row, std::size_t metric);

/// A text of a row; empty where there is none.
[[nodiscard]] std::string text_of(const observe::ResultRow& row, std::string_view column);

}  // namespace bubblesim::report
