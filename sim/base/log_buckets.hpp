// Buckets of a histogram of durations whose relative width is bounded.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "sim/base/time.hpp"

namespace bubblesim {

/// 2^kBits buckets of one width in each power of two of nanoseconds; below 2^(kBits + 1) ns each
/// nanosecond has its own. Negative durations count as zero.
template <unsigned kBits>
struct LogBuckets {
  [[nodiscard]] static constexpr std::uint32_t bucket_of(Duration span) {
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(span.count(), 0));
    const auto width = static_cast<unsigned>(std::bit_width(ns));
    const unsigned shift = width > kBits + 1 ? width - kBits - 1 : 0;
    return (shift << kBits) + static_cast<std::uint32_t>(ns >> shift);
  }
  /// The shortest duration of a bucket.
  [[nodiscard]] static constexpr Duration low_of(std::uint32_t bucket) {
    const unsigned shift = shift_of(bucket);
    return Duration{std::int64_t{bucket - (shift << kBits)} << shift};
  }
  [[nodiscard]] static constexpr Duration width_of(std::uint32_t bucket) {
    return Duration{std::int64_t{1} << shift_of(bucket)};
  }

 private:
  static constexpr unsigned shift_of(std::uint32_t bucket) {
    return bucket < (2U << kBits) ? 0 : (bucket >> kBits) - 1;
  }
};

}  // namespace bubblesim
