// How a timeline that bubblesim wrote for viewers (traces/export/chrome_trace.hpp) is told from a
// recording: it has kernels too, but not what joins them to their launches.
#pragma once

#include <string_view>

namespace bubblesim::traces {

/// A member of the file's "otherData".
inline constexpr std::string_view kTimelineMarkKey = "bubblesim";
inline constexpr std::string_view kTimelineMark = "timeline for viewers";

}  // namespace bubblesim::traces
