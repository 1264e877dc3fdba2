#include "capture/policy_host/span_histogram.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/nearest_rank.hpp"

namespace bubblesim::capture {
namespace {

using Layout = LogBuckets<5>;

Duration middle_of(std::uint32_t bucket) {
  return Layout::low_of(bucket) + Layout::width_of(bucket) / 2;
}

}  // namespace

void SpanHistogram::add(Duration span) {
  span = std::max(span, Duration{});
  ++counts_[Layout::bucket_of(span)];
  ++total_;
  sum_ += static_cast<double>(span.count());
  max_ = std::max(max_, span);
}

Duration SpanHistogram::percentile(double percent) const {
  const std::uint64_t rank = nearest_rank(percent, total_);
  std::uint64_t seen = 0;
  for (std::uint32_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(middle_of(i), max_);
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
