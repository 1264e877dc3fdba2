// Finds where JSON values end, without parsing them: string-aware bracket matching over a window,
// and the search for the next event after damage. Cost: one pass over the text, ~1 ns a byte.
//
// Bounded on hostile input: nesting beyond kMaxDepth is damage, and a value longer than the
// window's limit is too; so a damaged place is read again at most kMaxDepth times.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "traces/import/text_window.hpp"

namespace bubblesim::traces {

/// Kineto nests four deep; recorded Python arguments were seen at nine.
inline constexpr std::size_t kMaxDepth = 64;

enum class ScanStatus {
  kComplete,   ///< the value ends after `length` bytes
  kDamaged,    ///< a byte that no JSON has there, brackets that do not match, or too long
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

}  // namespace bubblesim::traces
