// The use of one GPU over time: the figures of ActivityMeter and the GPU's usage counters, for each
// interval of the run instead of the measured window.
//
// Intervals lie end to end from the start of the run to its end. They have one length, except that
// the last of the warm-up and the last of the run may be shorter. An interval begins at the end of
// the warm-up, so that the intervals from there on add up to the measured window.
//
// Times are whole nanoseconds and add up exactly. SM time is an integral, a double in the GPU's
// counters: at each boundary it is rounded to a whole SM-ns, so that sums over intervals do not
// drift and are within 1 SM-ns of the counters.
//
// One object for each GPU, used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::observe {

// The time of one GPU in each state: hears of every start and end of a device operation, and
// divides the measured window by the activities that ran together.
//
// Bubble time is time without a computing kernel of training: collectives leave most SMs free,
// copies and memsets all of them, so a filler could use it. It is recovered while an operation of
// a filler runs. Calls come in time order; each costs
// O(1) and allocates nothing.

/// The activities that matter for bubbles.
enum class Activity : std::uint8_t {
  kTrainingKernel, kTrainingCollective,
  kTrainingTransfer,  ///< a copy or memset
  kFillerWork,
};

class ActivityMeter {
 public:
  /// Nothing before `warmup` is counted.
  explicit ActivityMeter(SimTime warmup) : warmup_(warmup) {}

  void started(Activity activity, SimTime now);
  /// Precondition: one more started() than ended() of this activity.
  void ended(Activity activity, SimTime now);
  /// Counts up to `now`; call it at the end of the run, before the readings.
  void advance(SimTime now);

  /// Time in which any operation ran.
  [[nodiscard]] Duration busy() const { return any_of(kTraining | kFiller); }
  /// Time in which any operation other than a training collective ran.
  [[nodiscard]] Duration busy_without_collectives() const {
    return any_of(kKernel | kTransfer | kFiller);
  }
  /// Time in which a training operation ran, including collectives, copies and memsets.
  [[nodiscard]] Duration training_busy() const { return any_of(kTraining); }
  /// Time in which an operation of a filler ran.
  [[nodiscard]] Duration filler_busy() const { return any_of(kFiller); }
  /// Time in which no computing kernel of training ran.
  [[nodiscard]] Duration bubble() const { return only(0, kKernel); }
  /// Bubble time while a training collective ran (cause "collective").
  [[nodiscard]] Duration collective_bubble() const {
    return only(kCollective, kKernel | kCollective);
  }
  /// Bubble time while copies and memsets of training ran, and no collective (cause "transfer").
  [[nodiscard]] Duration transfer_bubble() const { return only(kTransfer, kTraining); }
  /// Bubble time while no training operation at all ran (cause "idle").
  [[nodiscard]] Duration idle_bubble() const { return only(0, kTraining); }
  /// Bubble time while a filler ran.
  [[nodiscard]] Duration recovered() const { return only(kFiller, kKernel | kFiller); }
  /// The part of recovered() whose bubbles had the cause "collective".
  [[nodiscard]] Duration recovered_collective() const {
    return only(kCollective | kFiller, kKernel | kCollective | kFiller);
  }
  /// The part of recovered() whose bubbles had the cause "transfer".
  [[nodiscard]] Duration recovered_transfer() const {
    return only(kTransfer | kFiller, kTraining | kFiller);
  }

 private:
  static constexpr unsigned kKernel = 1;
  static constexpr unsigned kCollective = 2;
  static constexpr unsigned kTransfer = 4;
  static constexpr unsigned kFiller = 8;
  static constexpr unsigned kTraining = kKernel | kCollective | kTransfer;

  [[nodiscard]] static constexpr unsigned bit_of(Activity activity) {
    return 1U << static_cast<unsigned>(activity);
  }
  /// Time in which one of the activities ran.
  [[nodiscard]] Duration any_of(unsigned activities) const;
  /// Time in which, of `among`, all of the activities ran and no other.
  [[nodiscard]] Duration only(unsigned activities, unsigned among) const;

  SimTime warmup_;
  SimTime last_ = kSimStart;
  std::array<std::uint32_t, 4> running_{};  ///< by Activity
  unsigned state_ = 0;                      ///< bit_of() of each running activity
  std::array<Duration, 16> in_state_{};     ///< by state_
};

/// Most intervals of a whole report, over its policies and GPUs: 96 bytes each, and 120 as CSV.
inline constexpr std::uint64_t kMostUsageIntervals = 1'000'000;

inline constexpr CounterSpec kUsageIntervalsDropped{
    "usage_intervals_dropped", Severity::kLoss,
    "intervals of usage over time beyond the limit; it ends early, results are unaffected"};

/// The usage that a simulation records.
struct UsageSetup {
  Duration interval{};      ///< 0: no series
  std::uint64_t most = kMostUsageIntervals;  ///< intervals of a GPU; later ones are left out
};

/// A GPU's power in an interval, if metered.
struct UsagePower {
  double watts = 0;      ///< mean
  double clock_mhz = 0;  ///< mean
};

struct UsageInterval {
  SimTime from{};
  SimTime to{};                     ///< > from
  Duration busy{};                  ///< any operation ran
  Duration training_busy{};         ///< an operation of training ran, collectives included
  Duration filler_busy{};           ///< an operation of a filler ran
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

/// The instants at which the intervals of a series end.
class UsageGrid {
 public:
  /// Precondition: interval > 0.
  UsageGrid(Duration interval, SimTime warmup) : interval_(interval), warmup_(warmup) {}

  /// The boundary after this one; the start of the run counts as one.
  [[nodiscard]] SimTime next_boundary(SimTime boundary) const;
  /// Number of intervals of a run that ends at `end`.
  [[nodiscard]] std::uint64_t count(SimTime end) const;

 private:
  Duration interval_;
  SimTime warmup_;
};

/// The shortest interval that divides a run of `length` into at most `most`; nothing: none does.
[[nodiscard]] std::optional<Duration> least_usage_interval(Duration length, Duration warmup,
                                                           std::uint64_t most);

class UsageSeries {
 public:
  /// A GPU's usage counters since the start of the run.
  struct Books {
    double training_sm_ns = 0;
    double filler_sm_ns = 0;
    Bytes memory;  ///< now
    std::optional<UsagePower> power = std::nullopt;  ///< since the last interval
  };

  void started(Activity activity, SimTime now) { meter_.started(activity, now); }
  void ended(Activity activity, SimTime now) { meter_.ended(activity, now); }

  /// Ends the interval that began with the last call, or with the run. Calls of close(),
  /// started() and ended() come in order of time. No effect if no time has passed.
  void close(SimTime now, const Books& books);

  [[nodiscard]] const std::vector<UsageInterval>& intervals() const { return intervals_; }
  [[nodiscard]] std::vector<UsageInterval> take() { return std::move(intervals_); }

 private:
  ActivityMeter meter_{kSimStart};
  UsageInterval total_;  ///< since the start of the run
  std::vector<UsageInterval> intervals_;
};

}  // namespace bubblesim::observe
