// Marks a timeline that bubblesim wrote for viewers (traces/export/chrome_trace.hpp). Such a
// timeline has kernels like a recording, but nothing that joins them to their launches.
#pragma once

#include <string_view>

namespace bubblesim::traces {

/// A member of the file's "otherData".
inline constexpr std::string_view kTimelineMarkKey = "bubblesim";
inline constexpr std::string_view kTimelineMark = "timeline for viewers";

}  // namespace bubblesim::traces
