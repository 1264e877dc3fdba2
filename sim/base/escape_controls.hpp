// Text from outside, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace bubblesim {

/// `text` with ASCII control characters as \xNN: they would end lines, move the cursor or end the
/// output.
[[nodiscard]] std::string escape_controls(std::string_view text);
/// The same of each line: text of ours that has lines, with names from outside in it.
[[nodiscard]] std::string escape_but_lines(std::string_view text);

}  // namespace bubblesim
