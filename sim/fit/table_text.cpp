#include "sim/fit/table_text.hpp"

#include <charconv>
#include <functional>
#include <numeric>

#include "sim/base/packed_file.hpp"

namespace bubblesim::fit {

Result<std::string> read_table_text(const std::string& path) {
  return read_packed_text(path, 512, "a table");
}

Result<CsvTable> read_packed_table(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_table_text(path));
  return CsvTable::parse(text, path);
}

Shapes shapes_of(std::string_view cell) {
  Shapes out;
  std::vector<double> shape;
  bool open = false;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const char letter = cell[i];
    if (letter == '[' || letter == '(') {
      open = true;
      shape.clear();
    } else if (letter == ']' || letter == ')') {
      if (open) out.push_back(shape);
      open = false;
    } else if (open && letter >= '0' && letter <= '9') {
      double value = 0;
      const auto end = std::from_chars(cell.data() + i, cell.data() + cell.size(), value).ptr;
      i = static_cast<std::size_t>(end - cell.data()) - 1;
      shape.push_back(value);
    }
  }
  return out;
}

double elements_of(const std::vector<double>& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
}

}  // namespace bubblesim::fit
