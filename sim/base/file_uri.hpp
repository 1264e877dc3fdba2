// Paths as URIs.
#pragma once

#include <string>

namespace bubblesim {

/// "file:///..." of the absolute path. All but letters and digits of ASCII and "/._-" is escaped,
/// so nothing of the path can look like a query.
[[nodiscard]] std::string file_uri(const std::string& path);

}  // namespace bubblesim
