// The program's version in keys of runs and in stores.
#pragma once

#include <set>
#include <string>

#include "sim/base/result.hpp"

namespace bubblesim::sweep {

/// "0.1.0+1a2b3c4d5e6f": the project's version and the last commit that changed the sources. If the
/// program was built from uncommitted changes or without git, the first 16 digits of its own file's
/// hash follow ("0.1.0+1a2b3c4d5e6f.changed.0123456789abcdef"): another binary is another version.
[[nodiscard]] std::string program_version();

/// program_version(), then the hash of each policy library. Fault: a library that cannot be read.
[[nodiscard]] Result<std::string> version_with_libraries(const std::set<std::string>& libraries);

}  // namespace bubblesim::sweep
