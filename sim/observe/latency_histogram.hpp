// Latencies counted in buckets: small, mergeable, and a percentile is off by at most 1 %.
//
// Buckets are log-linear: below 128 ns one a nanosecond; above, each power of two is cut into 128
// equal parts, so a bucket is at most 1/128 = 0.79 % of its values wide, and its middle, which
// stands for them, is off by at most 0.4 %. Merging adds counts: the same samples give the same
// histogram in any order and grouping. The longest sample is kept as it is beside the buckets, so
// that the maximum is exact; encode() leaves it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/observe/latency.hpp"

namespace bubblesim::observe {

class LatencyHistogram {
 public:
  LatencyHistogram() = default;
  /// All samples of `distribution`, finished and not.
  explicit LatencyHistogram(const LatencyDistribution& distribution);

  void add(Duration latency);            ///< >= 0, of a completed request
  void add_unfinished(Duration age);     ///< >= 0
  void merge(const LatencyHistogram& other);

  [[nodiscard]] std::uint64_t completed() const { return completed_total_; }
  [[nodiscard]] std::uint64_t unfinished() const { return unfinished_total_; }
  /// Nearest rank, as LatencyDistribution: the longest sample exactly, of any other the middle of
  /// its bucket, at most the longest sample. It is kLower where an unfinished sample lies in the
  /// bucket or below. Nothing if there is no sample.
  [[nodiscard]] std::optional<LatencyValue> percentile(double percent) const;

  /// A few bytes a bucket in use; equal histograms give the same bytes. The longest sample of what
  /// decode() returns is the middle of its bucket.
  [[nodiscard]] std::vector<std::uint8_t> encode() const;
  [[nodiscard]] static Result<LatencyHistogram> decode(std::span<const std::uint8_t> bytes);
  /// Whether all counts are equal: what encode() keeps.
  friend bool operator==(const LatencyHistogram& a, const LatencyHistogram& b) {
    return a.completed_ == b.completed_ && a.unfinished_ == b.unfinished_;
  }

 private:
  using Buckets = std::map<std::uint32_t, std::uint64_t>;
  Buckets completed_;
  Buckets unfinished_;
  std::uint64_t completed_total_ = 0;
  std::uint64_t unfinished_total_ = 0;
  Duration longest_{};  ///< of all samples; 0 without one
};

}  // namespace bubblesim::observe
