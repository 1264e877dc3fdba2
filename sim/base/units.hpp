// Quantities as text: "1.024ms", "40GiB", "900GB/s". Exact: decimal digits become whole
// nanoseconds or bytes without rounding, and a value that is not whole is refused. A number
// without a unit is refused, and so are signs, exponents and spaces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim {

/// Units: ns, us, ms, s, min, h. Never negative. "1.024ms", "0ns".
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

/// Units: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);

/// Units: a byte unit a second ("900GB/s"), Mbit/s, Gbit/s. The value must be a whole number of
/// bytes a second; the result is the nearest double.
[[nodiscard]] Result<BytesPerSecond> parse_rate(std::string_view text);

/// The units that the three parsers know, smallest first.
[[nodiscard]] std::vector<std::string_view> duration_units();
[[nodiscard]] std::vector<std::string_view> byte_units();
[[nodiscard]] std::vector<std::string_view> rate_units();

/// The exact span in the largest of ns, us, ms and s that is at most the span: "1.024ms", "0ns".
/// parse_duration reads it back, unless it is negative.
[[nodiscard]] std::string format_duration(Duration span);

/// The shortest exact text in a byte unit: "512MiB", "40GB". parse_bytes reads it back.
[[nodiscard]] std::string format_bytes(Bytes bytes);

/// Writes a rate in the largest decimal unit in which parse_rate reads back the same double:
/// "900GB/s".
[[nodiscard]] std::string format_rate(BytesPerSecond rate);

}  // namespace bubblesim
