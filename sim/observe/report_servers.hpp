// The waiting times of users of language-model servers, as text. OUTPUTS.md, "Servers", defines
// every column. A report without servers gives an empty text.
#pragma once

#include <string>

#include "sim/observe/report.hpp"
#include "sim/observe/run_result.hpp"

namespace bubblesim::observe {

/// A percentile in ms. With fewer than 100 requests the cell also shows their number; with fewer
/// than 20, only their number.
[[nodiscard]] std::string percentile_cell(const LatencyValue& value, std::size_t requests);

/// A table with a row for each policy and server; empty without servers.
[[nodiscard]] std::string server_table(const RunReport& report, Columns columns);

/// CSV: the line of column names; one line a policy and server.
[[nodiscard]] std::string servers_header();
[[nodiscard]] std::string servers_rows(const RunReport& report);

}  // namespace bubblesim::observe
