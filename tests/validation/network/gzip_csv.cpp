#include "tests/validation/network/gzip_csv.hpp"

#include <zlib.h>

#include <array>
#include <memory>
#include <sstream>

namespace bubblesim::validation {
namespace {

std::string text_of(const std::string& path) {
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
  std::string text;
  if (!file) return text;
  std::array<char, 65536> part{};
  for (int got = 1; got > 0;) {
    got = gzread(file.get(), part.data(), static_cast<unsigned>(part.size()));
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream cells(line);
  for (std::string cell; std::getline(cells, cell, ',');) out.push_back(cell);
  return out;
}

}  // namespace

std::vector<std::map<std::string, std::string>> read_gzip_csv(const std::string& path) {
  std::istringstream lines(text_of(path));
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
