// The rank that a trace file's name gives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace bubblesim::traces {

/// The number after the last "rank" of a file's name: "x-rank6-chrome.json", "rank_0.json".
[[nodiscard]] std::optional<std::uint32_t> rank_in_name(const std::filesystem::path& path);

}  // namespace bubblesim::traces
