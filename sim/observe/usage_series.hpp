// How one GPU was used over time: the run cut into intervals, and of each what ActivityMeter and
// the GPU's books say of the whole measured window.
//
// Intervals lie end to end from the start of the run to its end. They are of one length, but for
// the last before the end of the warm-up and the last of the run: at the end of the warm-up a new
// one begins, so that those after it add up to the measured window.
//
// Times are whole nanoseconds and add up exactly. SM time is an integral that the GPU's books hold
// as a double: at each boundary it is rounded to a whole SM-ns, so sums over intervals do not drift
// and are within 1 SM-ns of the books.
//
// One object a GPU: used by one thread at a time, it knows nothing of other GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/observe/activity_meter.hpp"

namespace bubblesim::observe {

/// Intervals of a whole report, over its policies and GPUs: 96 bytes each, and 120 as CSV.
inline constexpr std::uint64_t kMostUsageIntervals = 1'000'000;

inline constexpr CounterSpec kUsageIntervalsDropped{
    "usage_intervals_dropped", Severity::kLoss,
    "intervals of usage over time beyond the limit; it ends early, results are unaffected"};

/// What is recorded of a simulation.
struct UsageSetup {
  Duration interval{};      ///< 0: nothing
  std::uint64_t most = kMostUsageIntervals;  ///< intervals of a GPU; later ones are left out
};

/// What a GPU drew in an interval, where power is metered.
struct UsagePower {
  double watts = 0;      ///< mean
  double clock_mhz = 0;  ///< mean
};

struct UsageInterval {
  SimTime from{};
  SimTime to{};                     ///< > from
  Duration busy{};                  ///< any operation ran
  Duration training_busy{};         ///< one of training, collectives included
  Duration filler_busy{};           ///< one of a filler
  std::int64_t training_sm_ns = 0;  ///< SMs covered by resident blocks, times ns
  std::int64_t filler_sm_ns = 0;
  Bytes memory;                     ///< held by all clients at `to`
  std::optional<UsagePower> power;  ///< nothing: not metered
};

/// A GPU over time, as part of a result.
struct GpuUsage {
  GpuId gpu{};
  std::uint32_t sm_count = 0;
  std::vector<UsageInterval> intervals;
};

/// The grid of instants at which the intervals of a series end.
class UsageGrid {
 public:
  /// Precondition: interval > 0.
  UsageGrid(Duration interval, SimTime warmup) : interval_(interval), warmup_(warmup) {}

  /// The boundary after this one; the start of the run is one.
  [[nodiscard]] SimTime next_boundary(SimTime boundary) const;
  /// How many intervals a run has that ends then.
  [[nodiscard]] std::uint64_t count(SimTime end) const;

 private:
  Duration interval_;
  SimTime warmup_;
};

/// The shortest interval that cuts a run of `length` into at most so many; nothing: there is none.
[[nodiscard]] std::optional<Duration> least_usage_interval(Duration length, Duration warmup,
                                                           std::uint64_t most);

class UsageSeries {
 public:
  /// What a GPU's books say, since the start of the run.
  struct Books {
    double training_sm_ns = 0;
    double filler_sm_ns = 0;
    Bytes memory;  ///< now
    std::optional<UsagePower> power = std::nullopt;  ///< since the last interval
  };

  void started(Activity activity, SimTime now) { meter_.started(activity, now); }
  void ended(Activity activity, SimTime now) { meter_.ended(activity, now); }

  /// Ends the interval that began with the last call, or with the run. Calls are in order of time
  /// with started() and ended(). No effect if no time has passed.
  void close(SimTime now, const Books& books);

  [[nodiscard]] const std::vector<UsageInterval>& intervals() const { return intervals_; }
  [[nodiscard]] std::vector<UsageInterval> take() { return std::move(intervals_); }

 private:
  ActivityMeter meter_{kSimStart};
  UsageInterval total_;  ///< since the start of the run
  std::vector<UsageInterval> intervals_;
};

}  // namespace bubblesim::observe
