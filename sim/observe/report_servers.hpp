// The waiting times of users of language-model servers, as text. OUTPUTS.md, "Servers", defines
// every column. A report without servers gives an empty text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/observe/report.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::observe {

/// A percentile in ms. With fewer than 100 requests the cell also shows their number; with fewer
/// than 20, only their number.
[[nodiscard]] std::string percentile_cell(const LatencyValue& value, std::size_t requests);

/// A table of the columns, with a row for each of `rows`.
template <class Column, class Row>
[[nodiscard]] std::string rows_text(const std::vector<const Column*>& columns,
                                    const std::vector<Row>& rows) {
  std::vector<std::string> titles;
  std::vector<Align> aligns;
  for (const Column* column : columns) {
    titles.emplace_back(column->title);
    aligns.push_back(column->aligned);
  }
  TextTable table(std::move(titles), std::move(aligns), "");
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const Column* column : columns) cells.push_back(column->cell(row));
    table.row(std::move(cells));
  }
  return table.text();
}

/// A table with a row for each policy and server; empty without servers.
[[nodiscard]] std::string server_table(const RunReport& report, Columns columns);

/// CSV: the line of column names; one line a policy and server.
[[nodiscard]] std::string servers_header();
[[nodiscard]] std::string servers_rows(const RunReport& report);

}  // namespace bubblesim::observe
