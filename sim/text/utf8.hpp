// Characters of UTF-8 (RFC 3629) in texts that may be anything.
#pragma once

#include <cstddef>
#include <string_view>

namespace bubblesim {

/// What stands where a text has no character: U+FFFD.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Whether a byte is the second or a later one of its character.
[[nodiscard]] constexpr bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Bytes of the character that `text` starts with; 0 if it starts with none: an empty text, a byte
/// out of place, a form longer than needed, a surrogate, or a number beyond U+10FFFF.
[[nodiscard]] std::size_t character_length(std::string_view text);

/// Columns that a text takes in a terminal, as far as each character takes one.
[[nodiscard]] std::size_t letter_count(std::string_view text);

}  // namespace bubblesim
