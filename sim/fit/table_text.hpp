// Inside of kernel tables: text files, plain or gzip, tables and shapes in their cells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::fit {

/// The whole file, unpacked if its content is gzip: at most 512 MiB.
[[nodiscard]] Result<std::string> read_table_text(const std::string& path);

/// A table, packed or not.
[[nodiscard]] Result<CsvTable> read_packed_table(const std::string& path);

/// The sizes of tensors, a list a tensor.
using Shapes = std::vector<std::vector<double>>;

/// Lists of whole numbers inside a cell, one for each innermost pair of brackets:
/// "[[16, 512], [1]]" gives {16, 512}, {1}; "(4, 8)" gives {4, 8}.
[[nodiscard]] Shapes shapes_of(std::string_view cell);

/// How many elements a tensor of these sizes has.
[[nodiscard]] double elements_of(const std::vector<double>& shape);

}  // namespace bubblesim::fit
