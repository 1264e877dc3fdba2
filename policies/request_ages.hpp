// The age of the present request, in units of the 80th percentile of recent ones: a policy learns
// from it which requests are late without knowing when they arrived. Requests that follow each
// other closely count as one.
#pragma once

#include <algorithm>
#include <optional>

#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

class RequestAges {
 public:
  /// Tells whether a request is present from now on.
  void note(bool is_there, policy::Instant now) {
    if (!is_there && began_) learn(now - *began_);
    if (!is_there) began_.reset();
    if (is_there && !began_) began_ = now;
  }

  [[nodiscard]] bool is_there() const { return began_.has_value(); }

  /// The age of the present request; 0: there is none. Four of five requests ended at an age below
  /// 1. Nothing known: 1.
  [[nodiscard]] double of(policy::Instant now) const {
    if (!began_) return 0;
    return usual_ == Duration{} ? 1 : to_seconds(now - *began_) / to_seconds(usual_);
  }

 private:
  /// A longer request raises the bound, a shorter one lowers it. It settles where a share
  /// log(kDown) / log(kDown * kUp), one in five, is longer. An outlier's length has no effect.
  static constexpr double kUp = 1.5;
  static constexpr double kDown = 1.1;

  void learn(Duration length) {
    if (usual_ == Duration{}) {
      usual_ = std::max(length, Duration{1});
    } else {
      usual_ = scale(usual_, length > usual_ ? kUp : 1 / kDown);
    }
  }

  std::optional<policy::Instant> began_;
  Duration usual_{};
};

}  // namespace bubblesim::policies
