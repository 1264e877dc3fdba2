// What one GPU did, as lines of characters: one row a client, one column a span of time.
#pragma once

#include <string>

#include "sim/base/time.hpp"
#include "sim/observe/timeline.hpp"

namespace bubblesim::golden {

/// What is drawn.
struct TimelineView {
  GpuId gpu{};
  SimTime from{};
  Duration column{};
  std::size_t columns = 0;
};

/// A letter is the kernel that ran for most of the column: the first of its name, small for
/// collectives. "=" a kernel stood still, "h" nothing of the client ran and its host was held
/// inside a launch, "." none of these.
[[nodiscard]] std::string timeline_row(const observe::TimelineRecorder& timeline, ClientId client,
                                       const TimelineView& view);

/// Marks every `each` and at it the time since `from`, in ms.
[[nodiscard]] std::string timeline_ruler(const TimelineView& view, Duration column);

}  // namespace bubblesim::golden
