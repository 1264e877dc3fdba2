// Finds where JSON values end, without parsing them: string-aware bracket matching over a window,
// and the search for the next event after damage. Cost: one pass over the text.
//
// The cost is bounded on hostile input: nesting beyond kMaxDepth and values longer than the
// window's limit are damage, so that a damaged place is reread at most kMaxDepth times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/import/text_window.hpp"

namespace bubblesim::traces {

/// Kineto nests four deep; recorded Python arguments were seen at nine.
inline constexpr std::size_t kMaxDepth = 64;

enum class ScanStatus {
  kComplete,   ///< the value ends after `length` bytes
  kDamaged,    ///< a byte that JSON does not allow, unmatched brackets, or too long
  kTruncated,  ///< the input ends inside the value
};

struct Scan {
  ScanStatus status = ScanStatus::kTruncated;
  std::size_t length = 0;
};

/// White space of JSON.
[[nodiscard]] constexpr bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/// The value (object, array, string, number or word) that starts at the window's anchor.
/// Raw control characters inside strings are let through: profilers write them.
[[nodiscard]] Scan scan_value(TextWindow& window);

/// Moves the anchor past white space. False: the input ends.
[[nodiscard]] bool skip_space(TextWindow& window);

/// Offset from the anchor, at or after `from`, of the next `{` that looks like the start of an
/// event: followed by "ph":, or by another field of events and preceded by `,` or `[`.
[[nodiscard]] std::optional<std::size_t> find_event_start(TextWindow& window, std::size_t from);

/// Offset from the anchor just after the next `"traceEvents": [`.
[[nodiscard]] std::optional<std::size_t> find_events_array(TextWindow& window, std::size_t from);

/// The meaning of a byte outside strings. Letters of true, false, null, NaN, Infinity and exponents
/// are plain; all other letters are damage, so that a missing quote is found within a few bytes.
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

/// Length of the object or array that starts at text[0]. 0: it is damaged, nested deeper than
/// kMaxDepth, or not closed in `text`. Reads no byte beyond `text`. About 0.4 ns a byte: it takes
/// 64 bytes at a time, and skips strings by arithmetic.
[[nodiscard]] std::size_t match_brackets(std::string_view text);

}  // namespace bubblesim::traces
