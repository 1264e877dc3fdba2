// Cells of CSV as RFC 4180 has them: quoted where they must be, quotes doubled.
#pragma once

#include <string>
#include <string_view>

namespace bubblesim {

/// Quotes and all, whatever is in it.
inline void append_csv_quoted(std::string& line, std::string_view cell) {
  line += '"';
  for (const char letter : cell) {
    if (letter == '"') line += '"';
    line += letter;
  }
  line += '"';
}

/// A cell: in quotes if the text has a comma, a quote or a line end.
inline void append_csv_cell(std::string& line, std::string_view cell) {
  if (cell.find_first_of(",\"\r\n") == std::string_view::npos) line += cell;
  else append_csv_quoted(line, cell);
}

}  // namespace bubblesim
