// CUPTI's clock beside the host's.
#pragma once

#include "capture/record/cupti/api.hpp"
#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

struct ClockReading {
  traces::ClockPair pair;
  /// CUPTI's clock minus CLOCK_REALTIME; 0 where the two agree within the time that reading took.
  Duration offset{};
};

/// The tightest of a few readings. Without cuptiGetTimestamp: CLOCK_REALTIME, which is CUPTI's
/// base on Linux.
[[nodiscard]] ClockReading read_clocks(const CuptiApi& api) noexcept;

/// CLOCK_REALTIME and CLOCK_MONOTONIC, in nanoseconds.
[[nodiscard]] std::int64_t realtime_ns() noexcept;
[[nodiscard]] std::int64_t monotonic_ns() noexcept;

}  // namespace bubblesim::capture
