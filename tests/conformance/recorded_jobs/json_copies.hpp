// Copies of a profiler's JSON file that say the same: laid out otherwise, compressed otherwise,
// with the events in another order. Texts of values are copied letter by letter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bubblesim::testing {

enum class Layout : std::uint8_t {
  kCompact,       ///< no white space between tokens
  kIndented,      ///< Python's json.dump(indent=2)
  kTabsAndCrLf,   ///< a tab a level, lines end in CR LF, blanks around each colon
};

/// The same tokens with other white space between them.
[[nodiscard]] std::string laid_out(std::string_view json, Layout layout);

/// The same file with the elements of "traceEvents" in an order drawn from `seed`. A bare array is
/// its own list of events.
[[nodiscard]] std::string shuffled_events(std::string_view json, std::uint64_t seed);

/// One gzip member.
[[nodiscard]] std::string gzipped(std::string_view text, int level);

/// The bytes of a file; of a gzip file, what it holds. Empty: it cannot be read.
[[nodiscard]] std::string text_of(const std::string& path);

void write_bytes(const std::string& path, std::string_view bytes);

}  // namespace bubblesim::testing
