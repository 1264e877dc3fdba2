// Texts from outside, as every database takes them: valid UTF-8 without NUL.
#pragma once

#include <string>
#include <string_view>

namespace bubblesim::store {

[[nodiscard]] bool storable(std::string_view text);

/// Bytes that no database takes as text become U+FFFD.
[[nodiscard]] std::string made_storable(std::string_view text);

}  // namespace bubblesim::store
