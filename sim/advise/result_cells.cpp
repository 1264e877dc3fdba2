#include "sim/advise/result_cells.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace bubblesim::advise {
namespace {

constexpr std::string_view kFirstToken = "ttft_p95_ms";
constexpr std::string_view kEachToken = "tpot_p95_ms";

std::optional<std::size_t> column_of(std::string_view name) {
  const auto columns = observe::result_columns();
  const auto found = std::ranges::find(columns, name, &observe::ResultColumn::name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

}  // namespace

std::optional<double> RowReader::number(std::string_view column) const {
  const auto at = column_of(column);
  if (!at) return std::nullopt;
  const observe::Cell& cell = row_.cells[*at];
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  return std::nullopt;
}

double RowReader::number_or_zero(std::string_view column) const {
  return number(column).value_or(0);
}

std::string RowReader::text(std::string_view column) const {
  const auto at = column_of(column);
  if (!at) return {};
  const auto* text = std::get_if<std::string>(&row_.cells[*at]);
  return text != nullptr ? *text : std::string{};
}

std::optional<Duration> RowReader::latency(std::string_view column) const {
  const auto milliseconds = number(column);
  if (!milliseconds) return std::nullopt;
  return Duration{std::llround(*milliseconds * 1e6)};
}

TokenLatency RowReader::token_latency() const {
  return {latency(kFirstToken), latency(kEachToken)};
}

}  // namespace bubblesim::advise
