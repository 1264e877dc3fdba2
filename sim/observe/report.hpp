// A RunReport as text: for people, for spreadsheets, for programs. OUTPUTS.md defines every
// column and key; units are in their names.
//
// Everything is a string: libraries never print. The same report gives the same bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/observe/run_result.hpp"

namespace bubblesim::observe {

/// A fixed-width table: one row a policy and filler, then one line a counter of severity notice
/// or worse. A ">" before a latency marks a lower bound.
[[nodiscard]] std::string report_table(const RunReport& report);

/// Everything that the report holds but single latencies; times in whole nanoseconds. Ends with
/// a newline.
[[nodiscard]] std::string report_json(const RunReport& report);

/// Names of the CSV columns, in order.
[[nodiscard]] std::span<const std::string_view> csv_columns();
/// The line of column names.
[[nodiscard]] std::string csv_header();
/// One line a policy and filler (a policy without fillers has one line with empty filler
/// columns), in the order of csv_columns(). RFC 4180 quoting, lines end with "\n".
[[nodiscard]] std::string csv_rows(const RunReport& report);

/// The same of PolicyResult::usage: one line an interval, by policy, GPU and time.
[[nodiscard]] std::span<const std::string_view> usage_columns();
[[nodiscard]] std::string usage_header();
[[nodiscard]] std::string usage_rows(const RunReport& report);

}  // namespace bubblesim::observe
