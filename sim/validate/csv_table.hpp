// A table of measurements: CSV with a header line, fields in double quotes where they hold a
// comma. Cells are read by column name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::validate {

class CsvTable {
 public:
  /// Faults: the file cannot be read, a line has another number of cells than the header.
  [[nodiscard]] static Result<CsvTable> read(const std::string& path);
  [[nodiscard]] static Result<CsvTable> parse(std::string_view text, std::string file);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::size_t rows() const { return cells_.size(); }
  [[nodiscard]] bool has(std::string_view column) const;
  /// Empty if the column or the cell is.
  [[nodiscard]] std::string_view text(std::size_t row, std::string_view column) const;
  /// Nothing if empty; fault: not a number, or not whole.
  [[nodiscard]] Result<std::optional<double>> number(std::size_t row,
                                                     std::string_view column) const;
  /// Fault: empty, not a whole number, below 1.
  [[nodiscard]] Result<std::uint64_t> count(std::size_t row, std::string_view column) const;
  /// "line 12" of the row's first line.
  [[nodiscard]] std::string place(std::size_t row) const;

 private:
  [[nodiscard]] std::optional<std::size_t> index_of(std::string_view column) const;

  std::string file_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> cells_;
};

/// A cell in double quotes, its own doubled.
[[nodiscard]] std::string csv_quoted(std::string_view text);

}  // namespace bubblesim::validate
