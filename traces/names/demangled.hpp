// Names of kernels as they stand in the source.
#pragma once

#include <string>

namespace bubblesim::traces {

/// A mangled C++ name in words; any other name as it is.
[[nodiscard]] std::string demangled(const char* name);

}  // namespace bubblesim::traces
