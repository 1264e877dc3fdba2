// Tables of aligned columns, and counters, for a terminal and for JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim {

// A table of aligned columns.

/// How a column's cells are aligned. `kNumbersRight`: numbers right, other cells left.
enum class Align { kLeft, kRight, kNumbersRight };

/// Rows of cells. Columns are as wide as their widest cell and two spaces apart; lines have no
/// trailing spaces. Widths count UTF-8 characters, not bytes. Control characters are shown as \xNN.
class TextTable {
 public:
  /// Columns without an alignment are aligned right.
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
/// A counter_line() for each counter.
[[nodiscard]] std::string counter_lines(const CounterSet& counters);
/// A line for each loss and error, "Lost: 12 records_dropped: records that ...", to be shown above
/// figures that lack these records.
[[nodiscard]] std::string loss_lines(const CounterSet& counters);

/// A list of objects with each counter's name, severity, count and help.
[[nodiscard]] Json counter_list(const CounterSet& counters);
/// An object with each counter's count, severity and help, by name.
[[nodiscard]] Json counters_object(const CounterSet& counters);
/// An object with each counter's severity and count, by name.
[[nodiscard]] Json counts_object(const CounterSet& counters);

}  // namespace bubblesim
