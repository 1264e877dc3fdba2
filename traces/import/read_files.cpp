#include "traces/import/read_files.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace bubblesim::traces {

std::optional<std::uint32_t> rank_in_name(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::size_t at = name.rfind("rank");
  if (at == std::string::npos) return std::nullopt;
  at += 4;
  while (at < name.size() && (name[at] == '-' || name[at] == '_' || name[at] == '.')) ++at;
  std::uint32_t rank = 0;
  const auto [stop, error] = std::from_chars(name.data() + at, name.data() + name.size(), rank);
  if (error != std::errc{} || rank >= (1U << 24U)) return std::nullopt;
  return rank;
}

}  // namespace bubblesim::traces
