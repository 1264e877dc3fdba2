// Numbers as text, and text that is a number from its first character to its last.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
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

/// Appends `value` / 10^`decimals`, exactly: -1500 with three decimals is "-1.500".
inline void append_decimal(std::string& out, std::int64_t value, std::size_t decimals) {
  // Unsigned: the smallest int64 has no positive counterpart.
  const auto bits = static_cast<std::uint64_t>(value);
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                 value < 0 ? 0 - bits : bits).ptr;
  const auto count = static_cast<std::size_t>(end - digits.data());
  if (value < 0) out += '-';
  if (count <= decimals) out.append(decimals + 1 - count, '0');
  out.append(digits.data(), count);
  out.insert(out.size() - decimals, 1, '.');
}

/// Reads a number as std::from_chars does: decimal, no blanks, no plus sign, in the range of
/// `Number`. Nothing: `text` is not such a number, or has characters after it.
template <class Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace bubblesim
