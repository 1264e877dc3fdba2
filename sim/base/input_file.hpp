// A text file, whole.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim {

/// The text without the mark (EF BB BF) that some editors and spreadsheets put before UTF-8.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);

/// Reads to the end, since the kernel's own files (/proc) and pipes have no size; leaves a byte
/// order mark out. Fault: the file cannot be opened or read, with the system's reason.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

}  // namespace bubblesim
