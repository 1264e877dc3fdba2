// The two clocks of bubblesim, both in integer nanoseconds.
//
// Simulated time starts at zero when a run starts. Recorded time is a profiler's: its zero is the
// profiler's own. The types do not mix: `replay_time` in sim/workload is the one place that turns
// recorded time into simulated time. Range: int64 ns is 292 years.
#pragma once

#include <chrono>
#include <cstdint>

namespace bubblesim {

using Duration = std::chrono::duration<std::int64_t, std::nano>;

/// Time inside a simulation; zero is the start of the run.
struct SimClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SimClock, Duration>;
  static constexpr bool is_steady = true;
};

/// Time as a profiler recorded it; zero is the profiler's own.
struct TraceClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<TraceClock, Duration>;
  static constexpr bool is_steady = true;
};

using SimTime = SimClock::time_point;
using TraceTime = TraceClock::time_point;

/// The instant at which every simulation starts.
inline constexpr SimTime kSimStart{};

/// The count of nanoseconds, for files and displays; no other function leaves the time types.
template <class Clock>
[[nodiscard]] constexpr std::int64_t to_ns(std::chrono::time_point<Clock, Duration> instant) {
  return instant.time_since_epoch().count();
}
[[nodiscard]] constexpr std::int64_t to_ns(Duration span) { return span.count(); }

/// Seconds as a double, for rates and displays only; never stored as a time.
[[nodiscard]] constexpr double to_seconds(Duration span) {
  return static_cast<double>(span.count()) * 1e-9;
}

/// Scales a span by a factor, rounding half away from zero to whole nanoseconds.
[[nodiscard]] constexpr Duration scale(Duration span, double factor) {
  const double exact = static_cast<double>(span.count()) * factor;
  return Duration{static_cast<std::int64_t>(exact < 0 ? exact - 0.5 : exact + 0.5)};
}

}  // namespace bubblesim
