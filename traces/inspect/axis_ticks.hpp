// Ticks of a time axis.
#pragma once

#include <string>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::traces {

struct AxisTick {
  Duration at{};  ///< since the origin
  std::string label;
};

/// 4 to 13 ticks from zero on, 1, 2 or 5 times a power of ten apart, labelled in one unit;
/// `length` > 0.
[[nodiscard]] std::vector<AxisTick> axis_ticks(Duration length);

}  // namespace bubblesim::traces
