#include "sim/store/storable_text.hpp"

#include "sim/base/utf8.hpp"

namespace bubblesim::store {

// Databases end texts at NUL.
bool storable(std::string_view text) {
  return text.find('\0') == std::string_view::npos && is_utf8(text);
}

std::string made_storable(std::string_view text) {
  std::string result = repaired_utf8(text);
  for (std::size_t at = result.find('\0'); at != std::string::npos; at = result.find('\0', at)) {
    result.replace(at, 1, kReplacementCharacter);
  }
  return result;
}

}  // namespace bubblesim::store
