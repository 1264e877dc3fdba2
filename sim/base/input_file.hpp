// A text file, whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim {

/// The text without the mark (EF BB BF) that some editors and spreadsheets put before UTF-8.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);

/// Reads to the end, since the kernel's own files (/proc) and pipes have no size; leaves a byte
/// order mark out. Fault: the file cannot be opened or read, with the system's reason.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

// Paths as URIs.

/// "file:///..." of the absolute path. All but letters and digits of ASCII and "/._-" is escaped,
/// so nothing of the path can look like a query.
[[nodiscard]] std::string file_uri(const std::string& path);

// The order in which people count files: worker2.json comes before worker10.json.

/// Whether `a` comes before `b`, folder by folder: runs of digits compare as numbers of any length,
/// all other bytes as they are. Names that differ in leading zeros alone compare as text, so that
/// the order is total.
[[nodiscard]] bool natural_less(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace bubblesim
