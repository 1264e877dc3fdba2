// Copies of a profiler's JSON file with the same content: with other white space, with other
// compression, with the events in another order. The text of every value stays the same.
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

/// The same file with the elements of "traceEvents", or of the bare array that the file consists
/// of, in an order drawn from `seed`.
[[nodiscard]] std::string shuffled_events(std::string_view json, std::uint64_t seed);

/// One gzip member.
[[nodiscard]] std::string gzipped(std::string_view text, int level);

/// The bytes of a file, unpacked if it is gzip. Empty: it cannot be read.
[[nodiscard]] std::string text_of(const std::string& path);

void write_bytes(const std::string& path, std::string_view bytes);

}  // namespace bubblesim::testing
