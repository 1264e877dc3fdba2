// What a measured row is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/csv_table.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::validate {

/// Rows that judge take no part in any fit.
enum class RowRole : std::uint8_t { kFit, kJudge };

/// "fit", "judge".
[[nodiscard]] std::string_view role_name(RowRole role);

/// A row's column "role"; those that name none judge. Fault: another word.
[[nodiscard]] Result<RowRole> role_of(const CsvTable& table, std::size_t row);

}  // namespace bubblesim::validate
