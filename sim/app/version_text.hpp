// What `bubblesim --version` says.
#pragma once

#include <string>

namespace bubblesim::app {

/// "0.2.0".
[[nodiscard]] std::string release_number();

/// Release and commit, compiler and kind of build, and with and without which optional parts it was
/// built: lines.
[[nodiscard]] std::string version_text();

}  // namespace bubblesim::app
