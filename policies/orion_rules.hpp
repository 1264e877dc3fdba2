// The parts of Orion's scheduler that keep state of their own: how many SMs an operation needs, how
// large an operation may be beside a training job, and how much best-effort work may be
// outstanding. Source: scheduler_eval.cpp and profiling/postprocessing of eth-easl/orion at aded65d
// (MIT), described in our own words. Kept as in that code: the SMs needed count all waves, so a
// kernel that needs more SMs than the GPU has never runs beside a service; the sum of the fillers'
// SMs restarts with each poll, so it bounds only the launches of one instant; only a drain of all
// fillers lowers the sum of durations, not completions. The threshold begins at half of a filler's
// largest need and moves half way to a bound every 10 iterations; as fractions are cut off, the
// threshold never reaches that need, and the largest kernels never run beside training's. The limit
// that Orion's authors used beside training is not public: with the scripts' default
// (orion_hp_limit 1 ms, launch_jobs.py), which is below any iteration, the threshold falls to 0.
// Figures 7 and 10 of the artifact protect inference, which has no such search.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

/// Blocks over the blocks that an SM holds, rounded up; a kernel of several waves needs more SMs
/// than the GPU has. If the occupancy is not known, each block counts as one SM.
[[nodiscard]] constexpr std::uint64_t sms_needed(const policy::LaunchInfo& launch,
                                                 std::uint32_t sm_count) {
  if (sm_count == 0) return launch.blocks;
  const std::uint64_t per_sm = std::max<std::uint64_t>(1, launch.sm_blocks / sm_count);
  return (launch.blocks + per_sm - 1) / per_sm;
}

/// The most SMs that an operation may need beside a protected training job, by binary search. After
/// every `iterations` iterations their mean length is compared with the limit: if the mean is
/// above, the upper bound falls to the threshold, else the lower bound rises to the threshold. The
/// search begins half way to the largest need of any filler.
class SmThreshold {
 public:
  explicit SmThreshold(std::int64_t iterations) : iterations_(iterations) {}

  /// A filler launches an operation that needs `sms`. The largest need is the search's upper bound
  /// until a mean has been above the limit.
  void see(std::uint64_t sms) {
    if (is_bounded_ || sms <= high_) return;
    high_ = sms;
    threshold_ = (low_ + high_) / 2;
  }
  /// Called at an iteration's end; `limit` bounds the mean length.
  void end_iteration(Duration length, Duration limit) {
    if (threshold_ == low_) return;  // the search is over, or no filler has launched yet
    sum_ += length;
    if (++ended_ % iterations_ != 0) return;
    const Duration mean = sum_ / iterations_;
    sum_ = {};
    if (mean > limit) is_bounded_ = true;
    (mean > limit ? high_ : low_) = threshold_;
    threshold_ = (low_ + high_) / 2;
  }
  [[nodiscard]] std::uint64_t value() const { return threshold_; }

 private:
  std::int64_t iterations_;
  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
  std::uint64_t threshold_ = 0;
  bool is_bounded_ = false;  ///< a mean has been above the limit
  std::int64_t ended_ = 0;
  Duration sum_{};
};

/// Bounds best-effort work between two drains. When the durations of the operations launched since
/// the last drain add up to more than `most`, no operation is launched until all have completed;
/// then the sum restarts.
class DrainRule {
 public:
  /// Whether the rule lets an operation go that all other rules allow.
  [[nodiscard]] bool lets_go() {
    if (!is_full_) return true;
    if (outstanding_ > 0) return false;
    is_full_ = false;
    sum_ = {};
    return true;
  }
  void launch(Duration duration, std::uint32_t operations, Duration most) {
    outstanding_ += operations;
    sum_ += duration;
    if (sum_ > most) is_full_ = true;
  }
  void complete(std::uint64_t operations) { outstanding_ -= std::min(outstanding_, operations); }

 private:
  Duration sum_{};
  std::uint64_t outstanding_ = 0;
  bool is_full_ = false;
};

}  // namespace bubblesim::policies
