// The buckets of a latency histogram, for pictures and means.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/observe/latency_histogram.hpp"

namespace bubblesim::observe {

/// All buckets from the first to the last that is in use, empty ones too.
struct LatencyBuckets {
  std::vector<Duration> edges;  ///< bucket i is [edges[i], edges[i + 1]); one more than buckets
  std::vector<Duration> middles;            ///< what stands for a bucket's values
  std::vector<std::uint64_t> completed;     ///< by bucket
  std::vector<std::uint64_t> unfinished;    ///< by bucket, requests with their age
};

/// Empty vectors without a sample.
[[nodiscard]] LatencyBuckets buckets_of(const LatencyHistogram& histogram);

}  // namespace bubblesim::observe
