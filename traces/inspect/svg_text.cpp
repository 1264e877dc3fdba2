// Escaping and ticks.
#include "traces/inspect/svg_text.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace bubblesim::traces {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::int64_t kTicksAtMost = 12;

/// Bytes of the UTF-8 character that starts at `text`; 0: none does. Refuses overlong forms,
/// surrogates, and what lies beyond U+10FFFF (RFC 3629).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first <= 0xDFU) return continues(1) ? 2 : 0;
  if (first >= 0xE0U && first <= 0xEFU) {
    const bool overlong = first == 0xE0U && byte(1) < 0xA0U;
    const bool surrogate = first == 0xEDU && byte(1) > 0x9FU;
    const bool not_a_character = first == 0xEFU && byte(1) == 0xBFU && byte(2) >= 0xBEU;
    const bool whole = continues(1) && continues(2);
    return whole && !overlong && !surrogate && !not_a_character ? 3 : 0;
  }
  if (first >= 0xF0U && first <= 0xF4U) {
    const bool overlong = first == 0xF0U && byte(1) < 0x90U;
    const bool beyond = first == 0xF4U && byte(1) > 0x8FU;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string_view escaped(char character) {
  switch (character) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return {};
  }
}

Duration tick_step(Duration length) {
  std::int64_t power = 1;
  while (true) {
    for (const std::int64_t factor : {1, 2, 5}) {
      if (to_ns(length) / (factor * power) <= kTicksAtMost) return Duration{factor * power};
    }
    power *= 10;
  }
}

struct Unit {
  std::int64_t ns;
  std::string_view name;
};

Unit unit_for(Duration step) {
  const std::int64_t ns = to_ns(step);
  if (ns >= 100'000'000) return {1'000'000'000, "s"};
  if (ns >= 100'000) return {1'000'000, "ms"};
  if (ns >= 100) return {1'000, "us"};
  return {1, "ns"};
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const bool control = length == 1 && (static_cast<unsigned char>(text[0]) < 0x20U ||
                                         text[0] == '\x7F');
    if (length == 0 || control) {
      out += kReplacement;
    } else if (const std::string_view entity = escaped(text[0]); length == 1 && !entity.empty()) {
      out += entity;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::vector<AxisTick> axis_ticks(Duration from, Duration length) {
  const Duration step = tick_step(length);
  const Unit unit = unit_for(step);
  std::vector<AxisTick> ticks;
  Duration at = (from / step) * step;
  if (at < from) at += step;
  for (; at <= from + length; at += step) {
    const double value = static_cast<double>(to_ns(at)) / static_cast<double>(unit.ns);
    ticks.push_back({at, fmt::format("{:g} {}", value, unit.name)});
  }
  return ticks;
}

}  // namespace bubblesim::traces
