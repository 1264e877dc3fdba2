// The policy's instants out of a clock's times: they never decrease, whatever the clock does.
#pragma once

#include <algorithm>
#include <cstdint>

#include "capture/clock/host_clock.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::capture {

class InstantLine {
 public:
  void set_origin(HostTime origin) {
    origin_ = origin;
    last_ = origin;
  }

  /// The instant of an event of `time` that is noticed at `now`: not before the last instant, nor
  /// after `now`. Events that must be moved for that are counted; those before the origin are at 0.
  policy::Instant at(HostTime time, HostTime now) {
    now = std::max(now, last_);
    const HostTime taken = std::clamp(time, last_, now);
    if (time < last_ && last_ > origin_) count(last_ - time);
    if (time > now) count(time - now);
    last_ = taken;
    return taken - origin_;
  }

  [[nodiscard]] HostTime last() const { return last_; }
  [[nodiscard]] HostTime time_of(policy::Instant instant) const { return origin_ + instant; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] Duration longest() const { return longest_; }

 private:
  void count(Duration step) {
    ++steps_;
    longest_ = std::max(longest_, step);
  }

  HostTime origin_{};
  HostTime last_{};
  std::uint64_t steps_ = 0;
  Duration longest_{};
};

}  // namespace bubblesim::capture
