// The program's version, as keys of runs and stores hold it.
#pragma once

#include <set>
#include <string>

#include "sim/base/result.hpp"

namespace bubblesim::sweep {

/// "0.1.0+1a2b3c4d5e6f": the project's version and the last commit that changed the sources. A
/// program with changes that are in no commit, or built without git, has the first 16 digits of
/// its own file's hash too ("0.1.0+1a2b3c4d5e6f.changed.0123456789abcdef"): another binary is
/// another version.
[[nodiscard]] std::string program_version();

/// That, and the hash of each library of policies. Fault: one that cannot be read.
[[nodiscard]] Result<std::string> version_with_libraries(const std::set<std::string>& libraries);

}  // namespace bubblesim::sweep
