// Which named ranges mark iterations, phases and micro-batches (table: traces/join/README.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/trace.hpp"

namespace bubblesim::traces {

struct MarkerClass {
  MarkerKind kind = MarkerKind::kUser;
  std::int64_t number = -1;  ///< -1: the name gives none
};

/// Upper and lower case do not matter.
[[nodiscard]] MarkerClass classify_marker(std::string_view name);

}  // namespace bubblesim::traces
