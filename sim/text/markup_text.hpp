// Text inside of SVG, HTML and XML.
#pragma once

#include <string>
#include <string_view>

namespace bubblesim {

/// "&", "<", ">" and quotes as entities, for text and for attributes. What XML cannot hold (control
/// characters, bytes that are no UTF-8, U+FFFE and U+FFFF) becomes U+FFFD.
[[nodiscard]] std::string markup_text(std::string_view text);

}  // namespace bubblesim
