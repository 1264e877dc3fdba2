#include "traces/names/marker_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>

namespace bubblesim::traces {
namespace {

constexpr std::array<std::string_view, 6> kIterationWords{
    "profilerstep#", "bubblesim.iteration", "iteration", "iter", "training_step", "step"};
constexpr std::array<std::string_view, 3> kMicroBatchWords{"micro-batch", "micro_batch",
                                                           "microbatch"};
constexpr std::array<std::string_view, 5> kPhases{"forward", "backward", "optimizer", "prefill",
                                                  "decode"};

std::string lowered(std::string_view name) {
  std::string text(name.substr(0, 256));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The number that is all of `text` after blanks and separators.
std::optional<std::int64_t> number_in(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" :#_=");
  if (first == std::string_view::npos) return std::nullopt;
  text.remove_prefix(first);
  std::int64_t number = -1;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

template <std::size_t N>
std::optional<std::int64_t> numbered(std::string_view name,
                                     const std::array<std::string_view, N>& words) {
  for (const std::string_view word : words) {
    if (!name.starts_with(word)) continue;
    if (const auto number = number_in(name.substr(word.size()))) return number;
  }
  return std::nullopt;
}

}  // namespace

MarkerClass classify_marker(std::string_view name) {
  const std::string text = lowered(name);
  if (const auto number = numbered(text, kIterationWords)) return {MarkerKind::kIteration, *number};
  if (const auto number = numbered(text, kMicroBatchWords)) {
    return {MarkerKind::kMicroBatch, *number};
  }
  const bool phase = text.starts_with("phase:") ||
                     std::find(kPhases.begin(), kPhases.end(), text) != kPhases.end();
  return {phase ? MarkerKind::kPhase : MarkerKind::kUser, -1};
}

}  // namespace bubblesim::traces
