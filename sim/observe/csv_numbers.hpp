// Numbers as the CSV files of this room write them (OUTPUTS.md, "CSV").
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include "sim/base/time.hpp"

namespace bubblesim::observe {

/// The shortest text that reads back as the same double; of nothing, none.
inline std::string number(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), end) : std::string();
}

inline std::string number(const std::optional<double>& value) {
  return value ? number(*value) : std::string();
}

/// Nanoseconds over a power of ten, exactly: digits after the point are `decimals`.
inline std::string decimal(Duration span, std::size_t decimals) {
  const bool negative = span < Duration::zero();
  std::string digits = std::to_string(span.count()).substr(negative ? 1 : 0);
  if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
  digits.insert(digits.size() - decimals, ".");
  return (negative ? "-" : "") + digits;
}
inline std::string seconds(Duration span) { return decimal(span, 9); }
inline std::string milliseconds(Duration span) { return decimal(span, 6); }

}  // namespace bubblesim::observe
