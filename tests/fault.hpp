// What a result holds, as tests ask for it: a test fails where it holds the other.
#pragma once

#include <gtest/gtest.h>

#include <concepts>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/base/result.hpp"

namespace bubblesim {

template <class T, class E>
E error_of(const tl::expected<T, E>& result) {
  EXPECT_FALSE(result) << "expected a fault";
  if (!result) return result.error();
  if constexpr (std::same_as<E, Errors>) return Errors{Error{}};
  else return E{};
}

/// The value; without one, the test ends with the fault.
template <class T, class E>
T must(tl::expected<T, E> result) {
  if (result) return *std::move(result);
  std::string text;
  if constexpr (std::same_as<E, Error>) text = result.error().text();
  if constexpr (std::same_as<E, Errors>) {
    for (const Error& fault : result.error()) text += fault.text() + "\n";
  }
  throw std::runtime_error(text);
}
template <class T>
T must(std::optional<T> value) {
  if (!value) throw std::runtime_error("expected a value");
  return *std::move(value);
}

}  // namespace bubblesim
