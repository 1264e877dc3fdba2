// Percentiles and medians. A nearest-rank percentile is one of the values; functions that
// interpolate say so.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim {

/// ceil(percent / 100 * count), from 1 to count. Multiplies before it divides: 0.95 * 100 is not
/// exactly 95 in binary; 95 * 100 / 100 is.
[[nodiscard]] inline std::uint64_t nearest_rank(double percent, std::uint64_t count) {
  const double rank = std::ceil(percent * static_cast<double>(count) / 100.0);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(rank), 1, count);
}

/// The value at this rank of ascending values. Precondition: there is a value.
template <class Value>
[[nodiscard]] const Value& percentile_of(const std::vector<Value>& ascending, double percent) {
  return ascending[static_cast<std::size_t>(nearest_rank(percent, ascending.size())) - 1];
}

/// The middle value; of an even number of values the upper of the two; Value{} without values.
template <class Value>
[[nodiscard]] Value upper_median(std::vector<Value> values) {
  if (values.empty()) return Value{};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The quantile `share`, in [0, 1], of ascending values, interpolated linearly between two values
/// (Hyndman and Fan 1996, type 7). 0 without values.
[[nodiscard]] inline double interpolated_quantile(const std::vector<double>& ascending,
                                                  double share) {
  if (ascending.empty()) return 0;
  const double place = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  const double part = place - static_cast<double>(below);
  return ascending[below] + part * (ascending[above] - ascending[below]);
}

// Buckets of a histogram of durations whose relative width is bounded.

/// 2^kBits buckets of equal width in each power of two of nanoseconds; below 2^(kBits + 1) ns each
/// nanosecond has its own bucket. Negative durations count as zero.
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
