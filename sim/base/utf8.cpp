#include "sim/base/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace bubblesim {
namespace {

/// Bytes before the first one that is not ASCII. Most texts are nothing else, kernels' names long:
/// blocks of four words take half as long as single words do.
std::size_t ascii_length(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  std::size_t at = 0;
  for (std::array<std::uint64_t, 4> block{}; at + sizeof block <= text.size(); at += sizeof block) {
    std::memcpy(block.data(), text.data() + at, sizeof block);
    if (((block[0] | block[1] | block[2] | block[3]) & kHighBits) != 0) break;
  }
  for (std::uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & kHighBits) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80U) ++at;
  return at;
}

}  // namespace

std::size_t character_length(std::string_view text) {
  const std::size_t length = text.empty() ? 0 : length_by_lead(text[0]);
  if (length < 2) return length;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues_character(text[i])) return 0;
  }
  const auto first = static_cast<unsigned char>(text[0]);
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xE0U && second < 0xA0U) || (first == 0xF0U && second < 0x90U);
  const bool surrogate = first == 0xEDU && second > 0x9FU;
  const bool beyond = first == 0xF4U && second > 0x8FU;
  return overlong || surrogate || beyond ? 0 : length;
}

bool is_utf8(std::string_view text) {
  text.remove_prefix(ascii_length(text));
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
    text.remove_prefix(ascii_length(text));
  }
  return true;
}

std::string repaired_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = std::max(ascii_length(text), character_length(text));
    out += length == 0 ? kReplacementCharacter : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void append_character(std::string& out, std::uint32_t number) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((number >> shift) & 0x3FU));
  };
  if (number < 0x80U) {
    out += static_cast<char>(number);
  } else if (number < 0x800U) {
    out += static_cast<char>(0xC0U | (number >> 6U));
    tail(0);
  } else if (number > 0x10FFFFU || (number >= 0xD800U && number <= 0xDFFFU)) {
    out += kReplacementCharacter;
  } else if (number < 0x10000U) {
    out += static_cast<char>(0xE0U | (number >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (number >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::size_t uncut_length(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text.size();
  while (limit > 0 && continues_character(text[limit])) --limit;
  return limit;
}

std::size_t letter_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

namespace {

std::string escaped_but(std::string_view kept, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if ((byte < 0x20 || byte == 0x7F) && kept.find(letter) == kept.npos) {
      out += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace

std::string escape_but_lines(std::string_view text) { return escaped_but("\n", text); }

std::string escape_controls(std::string_view text) { return escaped_but("", text); }

}  // namespace bubblesim
