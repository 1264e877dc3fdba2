#include "sim/base/escape_controls.hpp"

namespace bubblesim {

std::string escape_but_lines(std::string_view text) {
  const std::size_t end = text.find('\n');
  std::string out = escape_controls(text.substr(0, end));
  for (std::size_t at = end; at != std::string_view::npos;) {
    const std::size_t next = text.find('\n', at + 1);
    out += '\n' + escape_controls(text.substr(at + 1, next - at - 1));
    at = next;
  }
  return out;
}

std::string escape_controls(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace bubblesim
