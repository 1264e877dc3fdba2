// Constants of device and cluster files: {"value": ..., "unit": ..., "source": ...}. A constant
// without a source, or with another unit than the one expected, is a fault.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"

namespace bubblesim::hardware {

/// The object of a constant, its source checked.
[[nodiscard]] ObjectReader constant(ObjectReader& parent, std::string_view key,
                                    Presence presence = Presence::kRequired);

/// For values that are bare numbers: the unit beside them.
void check_unit(ObjectReader& constant, std::string_view unit);

}  // namespace bubblesim::hardware
