// AntMan's throttle inside one opportunistic job, as the re-implementation for TensorFlow has it
// (gpu_resource_management.cc of alibaba/GPU-scheduler-for-deep-learning at 2069b38): after a
// mini-batch that took d, s of it inserted, the job should take (d - s) 100 / p. It sleeps the
// missing time, less a fixed cost, at once. The same time is then spread evenly over the operations
// of the next mini-batch, which needs no sleep after it. So mini-batches alternate between one
// sleep after them and short ones within.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/time.hpp"

namespace bubblesim::policies {

class AntManThrottle {
 public:
  explicit AntManThrottle(Duration fixed_cost) : fixed_cost_(fixed_cost) {}

  /// A mini-batch ended. Its length, from its first operation to its end; the percentage, 1..100.
  /// Returns how long the job sleeps before the next mini-batch.
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
