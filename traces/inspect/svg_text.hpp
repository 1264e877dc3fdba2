// Text and axis ticks of the picture.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::traces {

/// Escaped for XML text and attributes. Control characters and bytes that are not UTF-8 become
/// U+FFFD.
[[nodiscard]] std::string xml_text(std::string_view text);

struct AxisTick {
  Duration at{};  ///< since the origin
  std::string label;
};

/// 4 to 13 ticks at 1, 2 or 5 times a power of ten, labelled in one unit; `length` > 0.
[[nodiscard]] std::vector<AxisTick> axis_ticks(Duration from, Duration length);

}  // namespace bubblesim::traces
