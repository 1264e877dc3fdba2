// Characters of UTF-8 (RFC 3629) in arbitrary bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bubblesim {

/// U+FFFD, which replaces invalid bytes.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Whether a byte is the second or a later one of its character.
[[nodiscard]] constexpr bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Bytes of the character whose first byte this is; 0 if no character starts with it.
[[nodiscard]] constexpr std::size_t length_by_lead(char byte) {
  const auto lead = static_cast<unsigned char>(byte);
  if (lead < 0x80U) return 1;
  if (lead < 0xC2U || lead > 0xF4U) return 0;
  return lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
}

/// Bytes of the character that `text` starts with; 0 for an empty text and for invalid UTF-8 (a
/// byte out of place, a form longer than needed, a surrogate, a number beyond U+10FFFF).
[[nodiscard]] std::size_t character_length(std::string_view text);

/// Whether `text` is valid UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text);

/// `text` with U+FFFD in place of each invalid byte.
[[nodiscard]] std::string repaired_utf8(std::string_view text);

/// Appends the character of a number; U+FFFD for surrogates and numbers beyond U+10FFFF.
void append_character(std::string& out, std::uint32_t number);

/// The most bytes that can be kept of `text`, up to `limit`, without cutting a character.
[[nodiscard]] std::size_t uncut_length(std::string_view text, std::size_t limit);

/// Columns of a text in a terminal, if each character takes one.
[[nodiscard]] std::size_t letter_count(std::string_view text);

// Text from outside, made fit for a terminal.

/// `text` with ASCII control characters as \xNN: they would end lines, move the cursor or end the
/// output.
[[nodiscard]] std::string escape_controls(std::string_view text);
/// As escape_controls, but keeps line ends: for text of several lines with outside names in it.
[[nodiscard]] std::string escape_but_lines(std::string_view text);

}  // namespace bubblesim
