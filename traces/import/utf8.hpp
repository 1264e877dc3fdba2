// Names come from any program: what is not UTF-8 must not reach outputs.
#pragma once

#include <string>
#include <string_view>

namespace bubblesim::traces {

[[nodiscard]] bool is_utf8(std::string_view text);

/// Replaces every byte that cannot belong to UTF-8 by U+FFFD.
[[nodiscard]] std::string as_utf8(std::string_view text);

[[nodiscard]] bool has_control(std::string_view text);

}  // namespace bubblesim::traces
