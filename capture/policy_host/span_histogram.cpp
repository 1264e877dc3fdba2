#include "capture/policy_host/span_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/nearest_rank.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::uint32_t kBits = 5;  ///< 2^5 buckets an octave

// Spans below 64 have a bucket each; above, the highest six bits choose it.
std::size_t bucket_of(std::uint64_t ns) {
  const auto width = static_cast<std::uint32_t>(std::bit_width(ns));
  if (width <= kBits + 1) return ns;
  const std::uint32_t shift = width - kBits - 1;
  return (std::size_t{shift} << kBits) + (ns >> shift);
}

std::uint64_t middle_of(std::size_t bucket) {
  if (bucket < (2U << kBits)) return bucket;
  const std::size_t shift = (bucket >> kBits) - 1;
  const std::uint64_t low = std::uint64_t{bucket - (shift << kBits)} << shift;
  return low + (std::uint64_t{1} << shift) / 2;
}

}  // namespace

void SpanHistogram::add(Duration span) {
  span = std::max(span, Duration{});
  ++counts_[bucket_of(static_cast<std::uint64_t>(span.count()))];
  ++total_;
  sum_ += static_cast<double>(span.count());
  max_ = std::max(max_, span);
}

Duration SpanHistogram::percentile(double percent) const {
  const std::uint64_t rank = nearest_rank(percent, total_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(Duration{static_cast<std::int64_t>(middle_of(i))}, max_);
  }
  return max_;
}

SpanSummary SpanHistogram::summary() const {
  if (total_ == 0) return {};
  SpanSummary result;
  result.count = total_;
  result.mean = Duration{std::llround(sum_ / static_cast<double>(total_))};
  result.p50 = percentile(50);
  result.p95 = percentile(95);
  result.p99 = percentile(99);
  result.max = max_;
  return result;
}

}  // namespace bubblesim::capture
