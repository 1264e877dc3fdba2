#include "sim/store/storable_text.hpp"

#include <algorithm>

#include "sim/base/utf8.hpp"

namespace bubblesim::store {
namespace {

/// As character_length, but NUL is none: databases end texts at it.
std::size_t storable_length(std::string_view text) {
  return text.starts_with('\0') ? 0 : character_length(text);
}

}  // namespace

bool storable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = storable_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string made_storable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = storable_length(text);
    result += length == 0 ? kReplacementCharacter : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

}  // namespace bubblesim::store
