// A report as typed rows, which CSV files and results stores hold. OUTPUTS.md defines the columns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/number_text.hpp"
#include "sim/base/time.hpp"
#include "sim/observe/run_result.hpp"

namespace bubblesim::observe {

enum class CellType : std::uint8_t { kText, kInteger, kNumber };

struct ResultColumn {
  std::string_view name;
  CellType type;
};

/// monostate: not measured or not applicable.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

/// A policy and one of its fillers (a policy without fillers has one row).
struct ResultRow {
  std::uint32_t policy = 0;  ///< index into RunReport::policies
  std::uint32_t filler = 0;  ///< index into PolicyResult::fillers
  std::vector<Cell> cells;   ///< by result_columns()
  friend bool operator==(const ResultRow&, const ResultRow&) = default;
};

[[nodiscard]] std::span<const ResultColumn> result_columns();
[[nodiscard]] std::vector<ResultRow> result_rows(const RunReport& report);

// Numbers as the CSV files of this room write them (OUTPUTS.md, "CSV").

/// Nanoseconds divided by 10^`decimals`, exactly, with `decimals` digits after the point.
inline std::string decimal(Duration span, std::size_t decimals) {
  std::string text;
  append_decimal(text, span.count(), decimals);
  return text;
}

}  // namespace bubblesim::observe
