#include "sim/text/utf8.hpp"

#include <algorithm>

namespace bubblesim {

std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continued = [&](std::size_t bytes) {
    for (std::size_t i = 1; i < bytes; ++i) {
      if (i >= text.size() || !continues_character(text[i])) return false;
    }
    return true;
  };
  const unsigned first = byte(0);
  if (first < 0x80U) return text.empty() ? 0 : 1;
  if (first < 0xC2U || first > 0xF4U) return 0;
  if (first < 0xE0U) return continued(2) ? 2 : 0;
  if (first < 0xF0U) {
    const bool overlong = first == 0xE0U && byte(1) < 0xA0U;
    const bool surrogate = first == 0xEDU && byte(1) > 0x9FU;
    return continued(3) && !overlong && !surrogate ? 3 : 0;
  }
  const bool overlong = first == 0xF0U && byte(1) < 0x90U;
  const bool beyond = first == 0xF4U && byte(1) > 0x8FU;
  return continued(4) && !overlong && !beyond ? 4 : 0;
}

std::size_t letter_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

}  // namespace bubblesim
