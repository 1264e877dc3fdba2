// Quantities with a unit in their type.
#pragma once

#include <compare>
#include <cstdint>

namespace bubblesim {

/// A number of bytes, never negative.
struct Bytes {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
};

/// Bytes a second; a rate, so a double.
struct BytesPerSecond {
  double value = 0;
  friend constexpr auto operator<=>(BytesPerSecond, BytesPerSecond) = default;
};

}  // namespace bubblesim
