// Times of collectives that are recorded with sizes only: importers ask a model of a network for
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

inline constexpr CounterSpec kCollectivesUntimed{
    "collectives_without_time", Severity::kLoss,
    "collectives without a duration, which cost nothing here; read the Chakra files with --cluster "
    "NAME (bubblesim clusters), which simulates those whose sizes and ranks they have"};
inline constexpr CounterSpec kCollectivesSimulated{
    "collectives_simulated", Severity::kNotice,
    "collectives without a duration, which last what they take alone on the cluster named"};

/// A collective without a recorded time.
struct UntimedCollective {
  CollectiveKind kind = CollectiveKind::kUnknown;
  std::uint64_t bytes = 0;               ///< input of each rank, as Collective::bytes
  std::span<const std::uint32_t> ranks;  ///< distinct; of a send and its receive: from, to
  std::uint32_t world = 1;               ///< ranks of the job
};

/// The time from the arrival of its last rank on; zero: unknown kind or size.
using CollectiveTimes = std::function<Result<Duration>(const UntimedCollective&)>;

}  // namespace bubblesim::traces
