#include "traces/export/json_text.hpp"

#include "sim/base/utf8.hpp"

namespace bubblesim::traces {
namespace {

using Byte = unsigned char;

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
    const std::size_t length = character_length(text.substr(at));
    out += length == 0 ? kReplacementCharacter : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  out += '"';
}

}  // namespace bubblesim::traces
