// A report as typed rows: what CSV writes and what a results store keeps. OUTPUTS.md defines the
// columns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/observe/run_result.hpp"

namespace bubblesim::observe {

enum class CellType : std::uint8_t { kText, kInteger, kNumber };

struct ResultColumn {
  std::string_view name;
  CellType type;
};

/// monostate: not measured or not applicable.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

/// A policy and a filler of it (a policy without fillers has one row).
struct ResultRow {
  std::uint32_t policy = 0;  ///< index into RunReport::policies
  std::uint32_t filler = 0;  ///< index into PolicyResult::fillers
  std::vector<Cell> cells;   ///< by result_columns()
};

[[nodiscard]] std::span<const ResultColumn> result_columns();
[[nodiscard]] std::vector<ResultRow> result_rows(const RunReport& report);

}  // namespace bubblesim::observe
