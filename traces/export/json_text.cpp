#include "traces/export/json_text.hpp"

namespace bubblesim::traces {
namespace {

using Byte = unsigned char;

bool continues(std::string_view text, std::size_t at, Byte low = 0x80, Byte high = 0xBF) {
  if (at >= text.size()) return false;
  const auto byte = static_cast<Byte>(text[at]);
  return byte >= low && byte <= high;
}

/// Bytes of the UTF-8 sequence at `at`, whose first byte is 0x80 or more; 0: not UTF-8.
/// Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<Byte>(text[at]);
  if (lead >= 0xC2 && lead <= 0xDF) return continues(text, at + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const Byte low = lead == 0xE0 ? 0xA0 : 0x80;
    const Byte high = lead == 0xED ? 0x9F : 0xBF;
    return continues(text, at + 1, low, high) && continues(text, at + 2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const Byte low = lead == 0xF0 ? 0x90 : 0x80;
    const Byte high = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(text, at + 1, low, high) && continues(text, at + 2) && continues(text, at + 3)
               ? 4
               : 0;
  }
  return 0;
}

/// Whether the byte stands for itself in a JSON string.
bool is_plain(char letter) {
  const auto byte = static_cast<Byte>(letter);
  return byte >= 0x20 && byte < 0x7F && letter != '"' && letter != '\\';
}

/// One that does not.
void escape_ascii(std::string& out, char letter) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (letter) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\t': out += "\\t"; return;
    case '\r': out += "\\r"; return;
    default: break;
  }
  const auto byte = static_cast<Byte>(letter);
  out += "\\u00";
  out += kHex[byte >> 4U];
  out += kHex[byte & 15U];
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_plain(text[end])) ++end;
    out.append(text, at, end - at);
    at = end;
    if (at == text.size()) break;
    if (static_cast<Byte>(text[at]) < 0x80) {
      escape_ascii(out, text[at++]);
      continue;
    }
    const std::size_t length = sequence_length(text, at);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  out += '"';
}

void append_microseconds(std::string& out, std::int64_t ns) {
  // Unsigned: the smallest int64 has no positive counterpart.
  const std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns)
                                    : static_cast<std::uint64_t>(ns);
  const std::uint64_t rest = size % 1000;
  if (ns < 0) out += '-';
  out += std::to_string(size / 1000);
  out += '.';
  out += static_cast<char>('0' + rest / 100);
  out += static_cast<char>('0' + rest / 10 % 10);
  out += static_cast<char>('0' + rest % 10);
}

}  // namespace bubblesim::traces
