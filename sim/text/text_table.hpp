// Tables of aligned columns, and counters, for a terminal and for JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim {

// A table of aligned columns.

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

/// A line in columns, "  loss  records_dropped  12  records that ...", with its line break.
[[nodiscard]] std::string counter_line(std::string_view name, const CounterSet::Entry& entry);
/// Such a line for each counter.
[[nodiscard]] std::string counter_lines(const CounterSet& counters);
/// A line for each loss and error, "Lost: 12 records_dropped: records that ...": what a recording
/// lacks; figures below it are of the rest.
[[nodiscard]] std::string loss_lines(const CounterSet& counters);

/// An object by name; of each its count, severity and help.
[[nodiscard]] Json counters_object(const CounterSet& counters);
/// An object by name; of each its severity and count.
[[nodiscard]] Json counts_object(const CounterSet& counters);

}  // namespace bubblesim
