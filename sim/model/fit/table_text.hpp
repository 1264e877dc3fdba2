// Inside of kernel tables: text files, plain or gzip, and comma-separated tables.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::model {

inline constexpr std::size_t kMaxTableBytes = std::size_t{512} << 20;  ///< unpacked

/// The whole file, unpacked if its content is gzip.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

/// Cells as text; quoted cells may hold commas and line ends.
struct CsvTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `columns`

  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
};

/// The first line names the columns. A row with another number of cells is a fault.
[[nodiscard]] Result<CsvTable> read_csv(const std::string& path);
[[nodiscard]] Result<CsvTable> parse_csv(std::string_view text, const std::string& label);

/// The whole cell as a finite number.
[[nodiscard]] std::optional<double> number_of(std::string_view cell);

/// The sizes of tensors, a list a tensor.
using Shapes = std::vector<std::vector<double>>;

/// Lists of whole numbers inside a cell, one for each innermost pair of brackets:
/// "[[16, 512], [1]]" gives {16, 512}, {1}; "(4, 8)" gives {4, 8}.
[[nodiscard]] Shapes shapes_of(std::string_view cell);

/// How many elements a tensor of these sizes has.
[[nodiscard]] double elements_of(const std::vector<double>& shape);

}  // namespace bubblesim::model
