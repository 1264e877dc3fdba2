// Whole-number division that rounds up.
#pragma once

#include <concepts>
#include <type_traits>

namespace bubblesim {

/// `b` must not be zero, and a + b - 1 must fit the type of `a`.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T divide_up(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

}  // namespace bubblesim
