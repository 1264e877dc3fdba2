#include "sim/text/escaped_text.hpp"

#include <algorithm>

#include "sim/base/utf8.hpp"

namespace bubblesim {
namespace {

/// How the character stands in markup; the character itself where nothing is wrong with it.
std::string_view in_markup(std::string_view character) {
  if (character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF") return kReplacementCharacter;
  if (character.size() != 1) return character;
  switch (character[0]) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: break;
  }
  const bool control = character[0] < ' ' || character[0] == '\x7F';
  return control ? kReplacementCharacter : character;
}

}  // namespace

std::string markup_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    out += length == 0 ? kReplacementCharacter : in_markup(text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace bubblesim
