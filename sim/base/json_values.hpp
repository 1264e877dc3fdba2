// Inside of json_reader: one JSON value as one typed value, or the message why it is not. Only
// json_*.cpp of this room include this file.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

#include "sim/base/json_tree.hpp"

namespace bubblesim::json_detail {

/// A value or, as the error, the message about it.
template <class T>
using Parsed = tl::expected<T, std::string>;

/// "found the number 5; expected text".
[[nodiscard]] tl::unexpected<std::string> mismatch(const Node& node, const std::string& expected);

[[nodiscard]] Parsed<std::string> to_text(const Node& node);
[[nodiscard]] Parsed<bool> to_flag(const Node& node);
/// Integers are written without point and exponent; quantities are texts with a unit.
[[nodiscard]] Parsed<std::int64_t> to_ranged(const Node& node, const Range<std::int64_t>& range);
[[nodiscard]] Parsed<std::uint64_t> to_ranged(const Node& node, const Range<std::uint64_t>& range);
[[nodiscard]] Parsed<double> to_ranged(const Node& node, const Range<double>& range);
[[nodiscard]] Parsed<Duration> to_ranged(const Node& node, const Range<Duration>& range);
[[nodiscard]] Parsed<Bytes> to_ranged(const Node& node, const Range<Bytes>& range);
[[nodiscard]] Parsed<BytesPerSecond> to_ranged(const Node& node,
                                               const Range<BytesPerSecond>& range);

}  // namespace bubblesim::json_detail
