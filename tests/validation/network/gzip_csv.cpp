#include "tests/validation/network/gzip_csv.hpp"

#include <sstream>

#include "sim/base/packed_file.hpp"

namespace bubblesim::validation {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream cells(line);
  for (std::string cell; std::getline(cells, cell, ',');) out.push_back(cell);
  return out;
}

}  // namespace

std::vector<std::map<std::string, std::string>> read_gzip_csv(const std::string& path) {
  std::istringstream lines(read_packed_text(path, 512, "a table").value_or(""));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = cells_of(line);
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < cells.size() && i < names.size(); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

}  // namespace bubblesim::validation
