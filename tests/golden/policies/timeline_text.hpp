// The timeline of one GPU as text: one row a client, one column a span of time.
#pragma once

#include <string>

#include "sim/base/time.hpp"
#include "sim/observe/timeline.hpp"

namespace bubblesim::golden {

/// The part of a timeline that is drawn.
struct TimelineView {
  GpuId gpu{};
  SimTime from{};
  Duration column{};
  std::size_t columns = 0;
};

/// A letter stands for the kernel that ran for most of the column: the first letter of its name,
/// in lower case for collectives. "=": a kernel was paused. "h": no work of the client ran, and the
/// policy held its host inside a launch. ".": none of these.
[[nodiscard]] std::string timeline_row(const observe::TimelineRecorder& timeline, ClientId client,
                                       const TimelineView& view);

/// A tick every `column` of time, followed by the time since `from` in whole ms.
[[nodiscard]] std::string timeline_ruler(const TimelineView& view, Duration column);

}  // namespace bubblesim::golden
