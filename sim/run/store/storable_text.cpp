#include "sim/run/store/storable_text.hpp"

#include <algorithm>

namespace bubblesim::run {
namespace {

/// Length of the valid UTF-8 sequence that `text` starts with (RFC 3629); 0: none, or a NUL.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead == 0 ? 0 : 1;
  if (lead >= 0xC2 && lead < 0xE0) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead < 0xF0) {
    const bool shortest = lead != 0xE0 || byte(1) >= 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return follows(1) && follows(2) && shortest && !surrogate ? 3 : 0;
  }
  if (lead < 0xF0 || lead > 0xF4) return 0;
  const bool in_range = (lead != 0xF0 || byte(1) >= 0x90) && (lead != 0xF4 || byte(1) < 0x90);
  return follows(1) && follows(2) && follows(3) && in_range ? 4 : 0;
}

}  // namespace

bool storable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string made_storable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    result += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

}  // namespace bubblesim::run
