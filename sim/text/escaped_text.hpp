// Text escaped for its surrounding format.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace bubblesim {

// Cells of CSV by RFC 4180: quoted if necessary, quotes doubled.

/// A cell: in quotes if the text has a comma, a quote or a line end.
inline void append_csv_cell(std::string& line, std::string_view cell) {
  if (cell.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += cell;
    return;
  }
  line += '"';
  for (const char letter : cell) {
    if (letter == '"') line += '"';
    line += letter;
  }
  line += '"';
}

/// The cells as a line, with its line end.
template <class Cells>
void append_csv_line(std::string& text, const Cells& cells) {
  bool first = true;
  for (const auto& cell : cells) {
    if (!std::exchange(first, false)) text += ',';
    append_csv_cell(text, cell);
  }
  text += '\n';
}

// Text inside of SVG, HTML and XML.

/// "&", "<", ">" and quotes as entities, for text and for attributes. Characters that XML forbids
/// (control characters, bytes that are not UTF-8, U+FFFE and U+FFFF) become U+FFFD.
[[nodiscard]] std::string markup_text(std::string_view text);

}  // namespace bubblesim
