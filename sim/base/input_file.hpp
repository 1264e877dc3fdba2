// A file's bytes, whole.
#pragma once

#include <string>

#include "sim/base/result.hpp"

namespace bubblesim {

/// Reads to the end, since the kernel's own files (/proc) and pipes have no size. Fault: the file
/// cannot be opened or read, with the system's reason.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

}  // namespace bubblesim
