#include "sim/base/nearest.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/base/utf8.hpp"

namespace bubblesim {
namespace {

// Longer words are never "near": bounds the time on hostile input.
constexpr std::size_t kMaxCompared = 64;
constexpr std::size_t kMaxListed = 24;
constexpr std::size_t kMaxQuoted = 60;

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// Optimal string alignment distance (Damerau-Levenshtein with adjacent swaps), three rows.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, kMaxCompared + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& previous = rows[(i + 2) % 3];
    const auto& before = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = lower(a[i - 1]);
      const char y = lower(b[j - 1]);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (x == y ? 0 : 1)});
      if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::vector<std::string_view> views(std::span<const std::string> names) {
  return {names.begin(), names.end()};
}

}  // namespace

std::optional<std::string_view> nearest_name(std::string_view word,
                                             std::span<const std::string_view> candidates) {
  if (word.size() > kMaxCompared) return std::nullopt;
  std::optional<std::string_view> nearest;
  std::size_t least = kMaxCompared;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kMaxCompared) continue;
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if ((longer - shorter) * 3 > longer) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance * 3 <= longer && distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string unknown_name_message(std::string_view kind, std::string_view word,
                                 std::span<const std::string_view> candidates) {
  std::string out = "unknown " + std::string(kind) + " " + quote_found(word);
  if (const auto nearest = nearest_name(word, candidates)) {
    out += "; did you mean \"" + std::string(*nearest) + "\"? Known: ";
  } else {
    out += "; known: ";
  }
  return out + list_names(candidates);
}

std::string unknown_name_message(std::string_view kind, std::string_view word,
                                 std::span<const std::string> candidates) {
  return unknown_name_message(kind, word, views(candidates));
}

std::string list_names(std::span<const std::string_view> names) {
  if (names.empty()) return "none";
  std::string out;
  const std::size_t shown = std::min(names.size(), kMaxListed);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) out += ", ";
    out += names[i];
  }
  if (shown < names.size()) out += " and " + std::to_string(names.size() - shown) + " more";
  return out;
}

std::string quote_found(std::string_view text) {
  const std::size_t end = uncut_length(text, kMaxQuoted);
  return '"' + escape_controls(text.substr(0, end)) + (end < text.size() ? "...\"" : "\"");
}

}  // namespace bubblesim
