#include "policies/orion_rules.hpp"

namespace bubblesim::policies {

void SmThreshold::end_iteration(Duration length, Duration limit) {
  if (threshold_ == low_) return;  // the search is over, or no filler has launched yet
  sum_ += length;
  if (++ended_ % iterations_ != 0) return;
  const Duration mean = sum_ / iterations_;
  sum_ = {};
  if (mean > limit) is_bounded_ = true;
  (mean > limit ? high_ : low_) = threshold_;
  threshold_ = (low_ + high_) / 2;
}

}  // namespace bubblesim::policies
