#include "capture/record/nvtx/nvtx_text.hpp"

#include <cstdint>
#include <cstring>

namespace bubblesim::capture {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

bool is_character(std::uint32_t code) {
  return code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
}

void append(std::string& out, std::uint32_t code) {
  if (!is_character(code)) code = kReplacement;
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Bytes of the character that begins with `lead`, 0: none does.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

/// Takes a character off the front of `rest`; kReplacement and one byte where there is none.
std::uint32_t next_character(std::string_view& rest) {
  const auto lead = static_cast<unsigned char>(rest.front());
  const std::size_t length = length_of(lead);
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  std::uint32_t code = length > 1 ? lead & (0x7FU >> length) : lead;
  bool good = length != 0 && length <= rest.size();
  for (std::size_t i = 1; good && i < length; ++i) {
    good = is_continuation(rest[i]);
    code = (code << 6U) | (static_cast<unsigned char>(rest[i]) & 0x3FU);
  }
  good = good && code >= kLeast[length] && is_character(code);
  rest.remove_prefix(good ? length : 1);
  return good ? code : kReplacement;
}

bool is_plain(std::string_view text) {
  for (const char byte : text) {
    if (static_cast<unsigned char>(byte) >= 0x80) return false;
  }
  return true;
}

}  // namespace

void cut(std::string& text, std::size_t limit) {
  if (text.size() <= limit) return;
  while (limit > 0 && is_continuation(text[limit])) --limit;
  text.resize(limit);
}

std::string name_of(const char* text, std::size_t limit) {
  if (text == nullptr) return {};
  std::size_t length = ::strnlen(text, limit);
  // Looks no further than the limit: a character that it cuts is left out whole.
  if (length == limit) {
    std::size_t lead = length;
    while (lead > 0 && length - lead < 3 && is_continuation(text[lead - 1])) --lead;
    if (lead > 0 && length_of(static_cast<unsigned char>(text[lead - 1])) > length - lead + 1) {
      length = lead - 1;
    }
  }
  std::string_view rest(text, length);
  if (is_plain(rest)) return std::string(rest);
  std::string out;
  while (!rest.empty()) append(out, next_character(rest));
  cut(out, limit);
  return out;
}

std::string name_of(const wchar_t* text, std::size_t limit) {
  std::string out;
  if (text == nullptr) return out;
  for (; *text != L'\0' && out.size() <= limit; ++text) {
    append(out, static_cast<std::uint32_t>(*text));
  }
  cut(out, limit);
  return out;
}

}  // namespace bubblesim::capture
