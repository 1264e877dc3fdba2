#include "sim/validate/csv_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>

#include "sim/base/nearest.hpp"
#include "sim/text/csv_text.hpp"

namespace bubblesim::validate {
namespace {

// Cells of one line; quotes may hold commas, and "" stands for a quote.
std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

Result<CsvTable> CsvTable::read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(path, "", "cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  return parse(text.str(), path);
}

Result<CsvTable> CsvTable::parse(std::string_view text, std::string file) {
  CsvTable table;
  table.file_ = std::move(file);
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::vector<std::string> cells = split(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (table.columns_.empty()) {
      table.columns_ = std::move(cells);
      continue;
    }
    if (cells.size() != table.columns_.size()) {
      return fail(table.file_, "line " + std::to_string(line_number),
                  "found " + std::to_string(cells.size()) + " cells; expected " +
                      std::to_string(table.columns_.size()) + ", as in the header");
    }
    table.cells_.push_back(std::move(cells));
  }
  if (table.cells_.empty()) return fail(table.file_, "", "expected a header and rows");
  return table;
}

std::optional<std::size_t> CsvTable::index_of(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

bool CsvTable::has(std::string_view column) const { return index_of(column).has_value(); }

std::string_view CsvTable::text(std::size_t row, std::string_view column) const {
  const auto index = index_of(column);
  return index ? std::string_view(cells_[row][*index]) : std::string_view{};
}

Result<std::optional<double>> CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string_view cell = text(row, column);
  if (cell.empty()) return std::optional<double>{};
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value)) {
    return fail(file_, place(row), std::string(column) + ": found " + quote_found(cell) +
                                       "; expected a number");
  }
  return std::optional<double>{value};
}

Result<std::uint64_t> CsvTable::count(std::size_t row, std::string_view column) const {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::optional<double> value, number(row, column));
  constexpr double kMost = 1e9;
  if (!value || *value < 1 || *value > kMost || *value != std::floor(*value)) {
    return fail(file_, place(row), std::string(column) + ": found " +
                                       quote_found(text(row, column)) +
                                       "; expected a whole number from 1 on");
  }
  return static_cast<std::uint64_t>(*value);
}

std::string CsvTable::place(std::size_t row) const { return "line " + std::to_string(row + 2); }

std::string csv_quoted(std::string_view text) {
  std::string out;
  append_csv_quoted(out, text);
  return out;
}

}  // namespace bubblesim::validate
