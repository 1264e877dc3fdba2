// Numbers as the CSV files of this room write them (OUTPUTS.md, "CSV").
#pragma once

#include <optional>
#include <string>

#include "sim/base/number_text.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::observe {

/// The shortest text that reads back as the same double; of nothing, none.
inline std::string number(double value) { return shortest_text(value); }

inline std::string number(const std::optional<double>& value) {
  return value ? number(*value) : std::string();
}

/// Nanoseconds over a power of ten, exactly: digits after the point are `decimals`.
inline std::string decimal(Duration span, std::size_t decimals) {
  std::string text;
  append_decimal(text, span.count(), decimals);
  return text;
}
inline std::string seconds(Duration span) { return decimal(span, 9); }
inline std::string milliseconds(Duration span) { return decimal(span, 6); }

}  // namespace bubblesim::observe
