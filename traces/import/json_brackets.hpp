// The fast way to the end of an object or array that is in order: brackets matched 64 bytes at a
// time, strings passed over by arithmetic. What it does not settle, `scan_value` reads byte by
// byte (traces/import/json_scan.hpp), which has the last word on damage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bubblesim::traces {

/// What a byte means outside strings. Letters of true, false, null, NaN, Infinity and exponents
/// are plain; all others are damage, which shows a lost quote within a few bytes.
enum class JsonByte : std::uint8_t { kPlain, kQuote, kOpen, kClose, kComma, kSpace, kBad };

[[nodiscard]] constexpr std::array<JsonByte, 256> make_json_bytes() {
  std::array<JsonByte, 256> bytes{};
  bytes.fill(JsonByte::kBad);
  const auto set = [&bytes](std::string_view characters, JsonByte meaning) {
    for (const char c : characters) bytes[static_cast<unsigned char>(c)] = meaning;
  };
  set("0123456789+-.eEtruefalsnNIiy:", JsonByte::kPlain);
  set(" \n\t\r", JsonByte::kSpace);
  set("\"", JsonByte::kQuote);
  set("{[", JsonByte::kOpen);
  set("}]", JsonByte::kClose);
  set(",", JsonByte::kComma);
  return bytes;
}
inline constexpr std::array<JsonByte, 256> kJsonBytes = make_json_bytes();

/// Length of the object or array that starts at text[0]. 0: not known, because it is damaged,
/// nests deeper than kMaxDepth, or does not end in `text`; or this processor has no SSE2.
/// Looks at no byte beyond `text`. About 0.4 ns a byte.
[[nodiscard]] std::size_t match_brackets(std::string_view text);

}  // namespace bubblesim::traces
