#include "sim/base/csv_table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim {
namespace {

void trim(std::string& cell) {
  cell.erase(cell.find_last_not_of(" \t\r") + 1);
  cell.erase(0, cell.find_first_not_of(" \t"));
}

/// Two columns of one name are a fault, since only one of them would be read. Columns without a
/// name, as spreadsheets leave them at the end of a line, are not read at all.
Result<void> check_names(const std::vector<std::string>& columns, const std::string& file,
                         std::size_t line) {
  std::map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto [first, fresh] = known.try_emplace(columns[i], i + 1);
    if (fresh || columns[i].empty()) continue;
    return fail(file, "line " + std::to_string(line),
                "columns " + std::to_string(first->second) + " and " + std::to_string(i + 1) +
                    " are both named " + quote_found(columns[i]) +
                    "; expected each name once");
  }
  return {};
}

}  // namespace

Result<CsvTable> CsvTable::read(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  return parse(text, path);
}

// Takes a row off the text; quotes may hold commas and line ends, and "" stands for a quote.
std::vector<std::string> CsvTable::next_cells(std::string_view& text, std::size_t& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  bool was_quoted = false;
  const auto end_cell = [&] {
    if (!was_quoted) trim(cells.back());
    was_quoted = false;
  };
  std::size_t at = 0;
  for (; at < text.size() && (quoted || text[at] != '\n'); ++at) {
    const char letter = text[at];
    if (letter == '\n') ++line;
    if (letter == '"' && quoted && text.substr(at + 1).starts_with('"')) {
      cells.back() += text[++at];
    } else if (letter == '"') {
      quoted = !quoted;
      was_quoted = true;
    } else if (letter == ',' && !quoted) {
      end_cell();
      cells.emplace_back();
    } else if (quoted || letter != '\r') {
      cells.back() += letter;
    }
  }
  end_cell();
  ++line;
  text.remove_prefix(std::min(at + 1, text.size()));
  return cells;
}

Result<CsvTable> CsvTable::parse(std::string_view text, std::string file) {
  text = without_byte_order_mark(text);
  CsvTable table;
  table.file_ = std::move(file);
  std::size_t next_line = 1;
  while (!text.empty()) {
    const std::size_t line = next_line;
    std::vector<std::string> cells = next_cells(text, next_line);
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (table.columns_.empty()) {
      table.columns_ = std::move(cells);
      BUBBLESIM_RETURN_IF_ERROR(check_names(table.columns_, table.file_, line));
    } else if (cells.size() == table.columns_.size()) {
      table.rows_.push_back({line, std::move(cells)});
    } else {
      return fail(table.file_, "line " + std::to_string(line),
                  "found " + std::to_string(cells.size()) + " cells; expected " +
                      std::to_string(table.columns_.size()) + ", as in the header");
    }
  }
  if (!table.rows_.empty()) return table;
  return fail(table.file_, "", table.columns_.empty() ? "is empty; expected a header and rows"
                                                      : "found no row below the header");
}

std::optional<std::size_t> CsvTable::index_of(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

CheckedResult<void> CsvTable::expect(std::span<const std::string_view> columns) const {
  Errors errors;
  for (const std::string_view column : columns) {
    if (!has(column)) errors.push_back({file_, "line 1", "no column " + quote_found(column)});
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return {};
}

std::string_view CsvTable::text(std::size_t row, std::string_view column) const {
  const auto index = index_of(column);
  return index ? std::string_view(rows_[row].cells[*index]) : std::string_view{};
}

std::optional<double> CsvTable::figure(std::size_t row, std::string_view column) const {
  const auto value = parse_number<double>(text(row, column));
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string CsvTable::place(std::size_t row) const {
  return "line " + std::to_string(rows_[row].line);
}

tl::unexpected<Error> CsvTable::fault(std::size_t row, std::string_view column,
                                      std::string_view expected) const {
  return fail(file_, place(row), std::string(column) + ": found " +
                                     quote_found(text(row, column)) + "; expected " +
                                     std::string(expected));
}

}  // namespace bubblesim
