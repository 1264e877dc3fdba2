// A distribution of spans in bounded memory: logarithmic buckets.
#pragma once

#include <array>
#include <cstdint>

#include "capture/policy_host/policy_host.hpp"

namespace bubblesim::capture {

/// Count, mean and largest are exact. A percentile is the middle of its bucket: at most 1.6 % off
/// (32 buckets an octave, so that a bucket is at most a 32nd of its spans wide), exact below 64 ns.
/// Negative spans count as zero. 16 KiB.
class SpanHistogram {
 public:
  void add(Duration span);
  [[nodiscard]] SpanSummary summary() const;

 private:
  [[nodiscard]] Duration percentile(double percent) const;

  std::array<std::uint64_t, 2048> counts_{};
  std::uint64_t total_ = 0;
  double sum_ = 0;  ///< ns
  Duration max_{};
};

}  // namespace bubblesim::capture
