// A table of measurements: CSV with a header line (RFC 4180; lines may end in CRLF). Cells are read
// by column name; blanks around an unquoted cell are removed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim {

class CsvTable {
 public:
  /// Faults: the file cannot be read, has no row, names a column twice, or a row has another number
  /// of cells than the header. Empty lines are skipped.
  [[nodiscard]] static Result<CsvTable> read(const std::string& path);
  [[nodiscard]] static Result<CsvTable> parse(std::string_view text, std::string file);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  [[nodiscard]] bool has(std::string_view column) const { return index_of(column).has_value(); }
  /// The names of the header, in its order.
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// Faults: missing columns.
  [[nodiscard]] CheckedResult<void> expect(std::span<const std::string_view> columns) const;
  /// Empty if there is no such column, or the cell is empty.
  [[nodiscard]] std::string_view text(std::size_t row, std::string_view column) const;
  /// Nothing if the cell is no finite number.
  [[nodiscard]] std::optional<double> figure(std::size_t row, std::string_view column) const;
  /// "line 12" of the row's first line.
  [[nodiscard]] std::string place(std::size_t row) const;
  /// A fault of a cell: the file, the row's line, the column, the text found and `expected`.
  [[nodiscard]] tl::unexpected<Error> fault(std::size_t row, std::string_view column,
                                            std::string_view expected) const;

 private:
  struct Row {
    std::size_t line = 1;
    std::vector<std::string> cells;
  };
  [[nodiscard]] static std::vector<std::string> next_cells(std::string_view& text,
                                                           std::size_t& line);
  [[nodiscard]] std::optional<std::size_t> index_of(std::string_view column) const;

  std::string file_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
};

}  // namespace bubblesim
