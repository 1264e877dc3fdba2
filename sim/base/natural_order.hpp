// The order in which people count files: worker2.json comes before worker10.json.
#pragma once

#include <filesystem>

namespace bubblesim {

/// Whether `a` comes before `b`, folder by folder: runs of digits compare as numbers of any length,
/// all other bytes as they are. Names that differ in leading zeros alone compare as text, so that
/// the order is total.
[[nodiscard]] bool natural_less(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace bubblesim
