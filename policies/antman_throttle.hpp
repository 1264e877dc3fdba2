// AntMan's throttle inside one opportunistic job, as in the re-implementation for TensorFlow
// (gpu_resource_management.cc of alibaba/GPU-scheduler-for-deep-learning at 2069b38). Of a
// mini-batch of length d, s is inserted waiting; at percentage p its length should be (d - s) 100 /
// p. The job sleeps the missing time, less a fixed cost, at once. The same time is then spread
// evenly over the operations of the next mini-batch (there: over asynchronous ones, antman.cpp),
// which needs no sleep after it. So a long sleep after one mini-batch alternates with short sleeps
// within the next.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/time.hpp"

namespace bubblesim::policies {

class AntManThrottle {
 public:
  explicit AntManThrottle(Duration fixed_cost) : fixed_cost_(fixed_cost) {}

  /// Called after a mini-batch with its length and the percentage (1..100). Returns how long the
  /// job sleeps before the next mini-batch.
  Duration end_batch(Duration length, std::int64_t percentage) {
    most_operations_ = std::max(most_operations_, operations_);
    operations_ = 0;
    const Duration slept = slot_ - left_;
    const Duration run = length > slept ? length - slept : Duration{1};
    const Duration total = run * 100 / percentage;
    slot_ = total > length + fixed_cost_ ? total - length - fixed_cost_ : Duration{};
    if (percentage >= 100) slot_ = {};
    left_ = slot_;
    return slot_;
  }

  /// How long the next operation waits.
  Duration begin_operation() {
    ++operations_;
    if (left_ == Duration{} || most_operations_ == 0) return {};
    const Duration wait = std::min(left_, slot_ / most_operations_);
    left_ -= wait;
    return wait;
  }

 private:
  Duration fixed_cost_;
  Duration slot_{};                   ///< to be inserted into this mini-batch
  Duration left_{};                   ///< of `slot_`, not yet inserted
  std::int64_t operations_ = 0;       ///< of this mini-batch so far
  std::int64_t most_operations_ = 0;  ///< of any mini-batch so far
};

}  // namespace bubblesim::policies
