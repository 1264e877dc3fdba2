// What requests take on a GPU of their own, and what they take beside training: of recent requests
// the longest one that had the one, or the other, from its begin to its end. Requests that follow
// each other closely count as one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

class RequestTimes {
 public:
  /// What a request has of the GPU: all of it, what training leaves, something between, nothing.
  enum class Share : std::uint8_t { kAlone, kBeside, kOther, kNone };

  /// A request is there, and has so much from now on.
  void serve(Share share, policy::Instant now) {
    if (!began_) {
      began_ = now;
      share_ = share;
    } else if (share_ != share && share_ != Share::kNone) {
      share_ = share == Share::kNone ? Share::kNone : Share::kOther;
    }
  }

  /// No request is there any more.
  void end(policy::Instant now) {
    if (began_) learn(now - *began_);
    began_.reset();
  }

  /// Zero: not known.
  [[nodiscard]] Duration alone() const { return alone_; }

  /// Beside training a request takes longer than on a GPU of its own, as far as known.
  [[nodiscard]] bool gain_alone() const {
    return beside_ == Duration{} || beside_ > scale(alone_, kGain);
  }

 private:
  /// A smaller difference is that of requests among themselves.
  static constexpr double kGain = 1.25;

  void learn(Duration time) {
    if (share_ == Share::kNone) return;
    if (share_ == Share::kBeside) keep_longest(beside_, time);
    if (share_ == Share::kAlone) return keep_longest(alone_, time);
    alone_ = std::min(alone_, time);  // alone, it would not have taken longer
  }

  /// Longest of about eight.
  static void keep_longest(Duration& longest, Duration time) {
    longest = std::max(time, longest * 7 / 8);
  }

  std::optional<policy::Instant> began_;  ///< the present request
  Share share_ = Share::kNone;            ///< that it has had; nothing, if it ever waited
  Duration alone_{};
  Duration beside_{};
};

}  // namespace bubblesim::policies
