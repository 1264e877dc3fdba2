// Constants of device and cluster files: {"value": ..., "unit": ..., "source": ...}. A constant
// without a source, or with another unit than the one expected, is a fault.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/json_reader.hpp"

namespace bubblesim::hardware {

/// The object of a constant; checks that it has a source.
[[nodiscard]] ObjectReader constant(ObjectReader& parent, std::string_view key,
                                    Presence presence = Presence::kRequired);

/// Checks the key `unit` of a constant whose value is a bare number.
void check_unit(ObjectReader& constant, std::string_view unit);

/// The largest count of anything on a chip or in a cluster that a file may state; it catches typos.
constexpr std::uint32_t kMaxCount = 1U << 20U;

/// A constant that counts something, from 1 to kMaxCount, in the unit named.
[[nodiscard]] std::uint32_t count(ObjectReader& parent, std::string_view key,
                                  std::string_view unit);

/// A constant that is a bare number within the range, in the unit named.
[[nodiscard]] double number(ObjectReader& parent, std::string_view key, std::string_view unit,
                            Range<double> range);

}  // namespace bubblesim::hardware
