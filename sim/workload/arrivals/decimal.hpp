// Decimal text to whole nanoseconds without passing through a double: "0.1" seconds is
// 100000000 ns, and a seven-digit fraction keeps its last digit.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "sim/base/time.hpp"

namespace bubblesim::workload {

/// A value, or the fault of its text.
template <class T>
using ParsedDecimal = tl::expected<T, std::string>;

/// Powers of ten from a unit down to a nanosecond.
inline constexpr int kSecondDigits = 9;
inline constexpr int kMillisecondDigits = 6;

/// Reads "12", "0.0230", "1e-05" in a unit of 10^`unit_digits` ns. Digits finer than a nanosecond
/// are cut off. Signs are refused (arrivals have no negative times), and so are times of more than
/// 100 years.
[[nodiscard]] ParsedDecimal<Duration> parse_decimal(std::string_view text, int unit_digits);

}  // namespace bubblesim::workload
