// What a rank's host threads did while the device was empty: blocked, silent, or neither.
// The terms are defined in bubbles.hpp.
#pragma once

#include <cstddef>

#include "sim/base/time.hpp"
#include "traces/iterations/intervals.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

struct HostPauses {
  Intervals blocked;  ///< a driving thread is blocked and none is in another call
  Intervals silent;   ///< at least `host_silence` without a call of a driving thread
};

/// Silence is reckoned over all recorded time: before the first and after the last call, too.
[[nodiscard]] HostPauses host_activity(const RankTrace& rank, Duration host_silence);

/// Answers parts_within() for spans that are asked in time order, in linear time over all of them.
class IntervalCursor {
 public:
  explicit IntervalCursor(const Intervals& spans) : spans_(spans) {}

  /// The parts of the list within `part`; `part.begin` never decreases between calls.
  [[nodiscard]] Intervals parts_within(Interval part);

 private:
  const Intervals& spans_;
  std::size_t first_ = 0;
};

}  // namespace bubblesim::traces
