// A table of aligned columns.
#pragma once

#include <string>
#include <vector>

namespace bubblesim::traces {

enum class Align { kLeft, kRight };

/// Rows of cells; columns as wide as their widest cell, two spaces apart, indented by two.
class TextTable {
 public:
  TextTable(std::vector<std::string> headings, std::vector<Align> aligns);

  void row(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<Align> aligns_;
};

}  // namespace bubblesim::traces
