// The figures of a results row by the names of their columns (sim/observe/OUTPUTS.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/advise/question.hpp"
#include "sim/observe/result_rows.hpp"

namespace bubblesim::advise {

class RowReader {
 public:
  explicit RowReader(const observe::ResultRow& row) : row_(row) {}
  /// Nothing: not measured, or no such column.
  [[nodiscard]] std::optional<double> number(std::string_view column) const;
  [[nodiscard]] double number_or_zero(std::string_view column) const;
  /// Empty: not said, or no such column.
  [[nodiscard]] std::string text(std::string_view column) const;
  /// The latency in a column in milliseconds.
  [[nodiscard]] std::optional<Duration> latency(std::string_view column) const;
  [[nodiscard]] TokenLatency token_latency() const;

 private:
  const observe::ResultRow& row_;
};

}  // namespace bubblesim::advise
