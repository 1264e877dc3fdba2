// A table of aligned columns.
#pragma once

#include <string>
#include <vector>

namespace bubblesim {

/// How a column's cells are aligned. `kNumbersRight`: cells that are numbers right, others left.
enum class Align { kLeft, kRight, kNumbersRight };

/// Rows of cells; columns are as wide as their widest cell and two spaces apart; lines do not end
/// in spaces. Widths count characters of UTF-8, not bytes. Control characters are shown as \xNN.
class TextTable {
 public:
  /// Columns without an alignment stand to the right.
  TextTable(std::vector<std::string> headings, std::vector<Align> aligns,
            std::string indent = "  ");

  void row(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;

  std::vector<std::vector<std::string>> rows_;
  std::vector<Align> aligns_;
  std::string indent_;
};

}  // namespace bubblesim
