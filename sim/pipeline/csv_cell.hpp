// One cell of a schedule's CSV.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim::pipeline {

/// What a cell says, before the file's spelling of B is known.
struct CsvCell {
  enum class Kind : std::uint8_t { kF, kI, kW, kB, kBw, kOverlapped, kIgnored };
  Kind kind = Kind::kIgnored;
  std::uint32_t stage = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t other_stage = 0;
  std::uint32_t other_micro_batch = 0;
  std::string_view word;  ///< of kIgnored: "SEND_F"; in static storage
};

/// `text` is not empty and has no space at its ends. The error has a message only.
[[nodiscard]] Result<CsvCell> parse_csv_cell(std::string_view text);

}  // namespace bubblesim::pipeline
