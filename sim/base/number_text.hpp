// Numbers as text, and text that is a number from its first character to its last.
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace bubblesim {

/// The shortest text that reads back as the same number.
[[nodiscard]] inline std::string shortest_text(double number) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return {buffer.data(), end};
}

/// Reads a number as std::from_chars does: decimal, no blanks, no plus sign, in the range of
/// `Number`. Nothing: `text` is empty, is no such number, or goes on behind one.
template <class Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace bubblesim
