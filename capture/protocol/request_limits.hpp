// What a recording may be asked for: the same limits in messages, in the environment and on the
// command line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

/// Bounds `duration` and `delay`; far from where sums of nanoseconds overflow.
inline constexpr Duration kLongestSpan = std::chrono::hours(24 * 366);
inline constexpr Bytes kLeastMaxBytes{1U << 20U};
/// Bounds `start_at_unix_s`: the year 2200.
inline constexpr std::int64_t kLastStartUnixSeconds = 7'258'118'400;
/// Bounds `output`, as the system limits paths.
inline constexpr std::size_t kMaxOutputBytes = 4095;
/// Bounds a mark's name.
inline constexpr std::size_t kMaxMarkBytes = 1024;

/// A path that a file or folder can have: not empty, not too long, UTF-8 without control
/// characters (messages are JSON). The fault's message begins with "found".
[[nodiscard]] Result<void> check_output(std::string_view path);
/// A mark's name: the same, but for its length.
[[nodiscard]] Result<void> check_mark(std::string_view name);

}  // namespace bubblesim::capture
