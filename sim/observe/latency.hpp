// Latencies of requests: every sample is kept, so percentiles are exact and mergeable.
//
// Percentile definition: nearest rank. With n samples in ascending order, the p-th percentile is
// the sample at rank ceil(p/100 * n), counted from 1. No interpolation: every percentile is a
// latency that some request had.
//
// Requests not completed at the run's end are samples, too: each counts with its age, a lower bound
// of its latency. A percentile that has such a sample at or below its rank is marked as a lower
// bound. No request is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::observe {

/// How a latency is known.
enum class Bound : std::uint8_t {
  kExact,
  kLower,  ///< the true value is this or more: unfinished requests lie at or below it
};

/// A latency, exact or as a lower bound.
struct LatencyValue {
  Duration value{};
  Bound bound = Bound::kExact;
  friend bool operator==(const LatencyValue&, const LatencyValue&) = default;
};

/// The percentiles that reports show; present only if the distribution has a sample.
struct LatencySummary {
  LatencyValue p50;
  LatencyValue p90;
  LatencyValue p95;
  LatencyValue p99;
  LatencyValue max;
  LatencyValue mean;  ///< rounded to the nearest nanosecond
};

/// Samples of one kind of request. Threads must not share a distribution.
class LatencyDistribution {
 public:
  /// Adds a completed request; `latency` >= 0, from arrival to completion.
  void add(Duration latency) { completed_.push_back(latency); }
  /// Adds a request not completed at the run's end; `age` >= 0, from arrival to that end.
  void add_unfinished(Duration age) { unfinished_.push_back(age); }
  /// Adds all samples of another distribution.
  void merge(const LatencyDistribution& other);

  [[nodiscard]] std::size_t completed() const { return completed_.size(); }
  [[nodiscard]] std::size_t unfinished() const { return unfinished_.size(); }
  [[nodiscard]] bool empty() const { return completed_.empty() && unfinished_.empty(); }
  /// Samples of completed requests, in the order in which they were added.
  [[nodiscard]] const std::vector<Duration>& samples() const { return completed_; }
  /// Ages of unfinished requests, in the order in which they were added.
  [[nodiscard]] const std::vector<Duration>& ages() const { return unfinished_; }
  /// Completed samples of at most `limit`.
  [[nodiscard]] std::size_t completed_within(Duration limit) const;

  /// Nearest-rank percentile; `percent` in (0, 100]. Nothing if there is no sample.
  /// O(n log n).
  [[nodiscard]] std::optional<LatencyValue> percentile(double percent) const;
  /// All percentiles of a summary with one sort. Nothing if there is no sample.
  [[nodiscard]] std::optional<LatencySummary> summary() const;

 private:
  std::vector<Duration> completed_;
  std::vector<Duration> unfinished_;
};

// Latencies counted in buckets: small, mergeable, with percentiles off by at most 1 %.
//
// Buckets are log-linear: below 128 ns one for each nanosecond; above, each power of two is cut
// into 128 equal parts. So a bucket is at most 1/128 = 0.79 % of its values wide, and its middle,
// which stands for its values, is off by at most 0.4 %. Merging adds counts: the same samples give
// the same histogram in any order and grouping. The longest sample is also kept exactly, so that
// the maximum is exact; encode() leaves it out.

class LatencyHistogram {
 public:
  LatencyHistogram() = default;
  /// All samples of `distribution`, finished and not.
  explicit LatencyHistogram(const LatencyDistribution& distribution);

  void add(Duration latency);            ///< >= 0; of a completed request
  void add_unfinished(Duration age);     ///< >= 0
  void merge(const LatencyHistogram& other);

  [[nodiscard]] std::uint64_t completed() const { return completed_total_; }
  [[nodiscard]] std::uint64_t unfinished() const { return unfinished_total_; }
  /// Nearest rank, as LatencyDistribution: the longest sample exactly; for any other sample the
  /// middle of its bucket, but at most the longest sample. kLower if an unfinished sample lies in
  /// this bucket or below. Nothing if there is no sample.
  [[nodiscard]] std::optional<LatencyValue> percentile(double percent) const;

  /// A few bytes for each used bucket; equal histograms give the same bytes. After decode() the
  /// longest sample is the middle of its bucket.
  [[nodiscard]] std::vector<std::uint8_t> encode() const;
  [[nodiscard]] static Result<LatencyHistogram> decode(std::span<const std::uint8_t> bytes);
  /// Whether all counts are equal, as encode() keeps them.
  friend bool operator==(const LatencyHistogram& a, const LatencyHistogram& b) {
    return a.completed_ == b.completed_ && a.unfinished_ == b.unfinished_;
  }
  friend struct LatencyBuckets buckets_of(const LatencyHistogram& histogram);

 private:
  using Buckets = std::map<std::uint32_t, std::uint64_t>;
  Buckets completed_;
  Buckets unfinished_;
  std::uint64_t completed_total_ = 0;
  std::uint64_t unfinished_total_ = 0;
  Duration longest_{};  ///< of all samples; 0 without one
};

// The buckets of a latency histogram, for pictures and means.

/// All buckets from the first to the last in use, including empty ones.
struct LatencyBuckets {
  std::vector<Duration> edges;  ///< bucket i is [edges[i], edges[i + 1]); one more than buckets
  std::vector<Duration> middles;            ///< by bucket, the value used for its samples
  std::vector<std::uint64_t> completed;     ///< by bucket
  std::vector<std::uint64_t> unfinished;    ///< by bucket, requests with their age
};

/// Empty vectors without a sample.
[[nodiscard]] LatencyBuckets buckets_of(const LatencyHistogram& histogram);

}  // namespace bubblesim::observe
