// Finds host threads that wait by querying an event repeatedly, instead of by a blocking call.
//
// A poll is a sequence of event or stream queries of a launching thread, without other device calls
// in between: at least kFewestQueries, each at most kLongestQueryPause after the previous one, over
// at least kShortestPoll. An operation must have ended between the begin of the second-to-last
// query and the end of the last one: that end stopped the queries. Two kinds of queries are no
// polls. Sequences of an allocator's queries do not end with an operation (none of 150 in 60
// recordings of PyTorch does), and a watchdog's thread launches nothing. Internal to the builder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::workload {

/// A poll: the trace's host calls from its first query to its last.
struct Poll {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

inline constexpr std::size_t kFewestQueries = 8;
inline constexpr Duration kLongestQueryPause = std::chrono::microseconds(20);
inline constexpr Duration kShortestPoll = std::chrono::microseconds(100);
/// The host clock's lead over the device clock may be underestimated by this much, the latency of a
/// launch.
inline constexpr Duration kClockDoubt = std::chrono::microseconds(5);

/// The polls of each thread in order of time. `host_ahead`: the host clock's lead over the
/// device's.
[[nodiscard]] std::vector<Poll> find_polls(const traces::RankTrace& trace, Duration host_ahead);

}  // namespace bubblesim::workload
