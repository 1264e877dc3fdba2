// Spreads spans that happen at the same time over lanes, because trace viewers draw the spans of
// one thread as a stack and break when one of them only partly overlaps another.
#pragma once

#include <cstdint>
#include <vector>

namespace bubblesim::traces {

/// What a lane may hold.
enum class LaneShape : std::uint8_t {
  kFlat,    ///< one span at a time: streams, requests
  kNested,  ///< spans inside spans: calls of a host thread
};

/// A span from `start_ns` up to, not including, `end_ns`; end_ns >= start_ns.
struct LaneSpan {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// A lane for each span, in the order of `spans`; lanes are numbered from 0 without gaps. Any two
/// spans of a lane are disjoint or, if the shape allows it, one lies inside the other. Each span
/// takes the lowest lane it can, in order of start (longer first). O(n log n).
[[nodiscard]] std::vector<std::uint32_t> assign_lanes(const std::vector<LaneSpan>& spans,
                                                      LaneShape shape);

}  // namespace bubblesim::traces
