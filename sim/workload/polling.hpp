// Host threads that ask again and again whether an event has come: waits that no call shows.
//
// A poll is a row of event or stream queries of a launching thread, without another call in between
// that touches the device: at least kFewestQueries, each at most kLongestQueryPause after the one
// before, over at least kShortestPoll. It ended because an operation did: between the begin of the
// last query but one and the end of the last. Queries of allocators do not end so (none of the 150
// rows in 60 recordings of PyTorch does); watchdogs launch nothing. Internal to the builder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::workload {

/// A poll: the host calls of the trace from its first query to its last.
struct Poll {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

inline constexpr std::size_t kFewestQueries = 8;
inline constexpr Duration kLongestQueryPause = std::chrono::microseconds(20);
inline constexpr Duration kShortestPoll = std::chrono::microseconds(100);
/// The host's lead over the device's clock may be underestimated by this, what a launch takes to
/// start.
inline constexpr Duration kClockDoubt = std::chrono::microseconds(5);

/// The polls of each thread in order of time; the host's clock is so far ahead of the device's.
[[nodiscard]] std::vector<Poll> find_polls(const traces::RankTrace& trace, Duration host_ahead);

}  // namespace bubblesim::workload
