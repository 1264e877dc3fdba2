// Latencies of requests: every sample is kept, so percentiles are exact and mergeable.
//
// Percentile definition: nearest rank. With n samples in ascending order, the p-th percentile is
// the sample at rank ceil(p/100 * n), counted from 1. No interpolation: every percentile is a
// latency that some request had.
//
// Requests that had not completed when the run ended are samples too: each one enters with its
// age at the end, which its latency can only exceed. A percentile that has such a sample at or
// below its rank is a lower bound and says so. Nothing leaves the distribution quietly.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::observe {

/// What is known of a latency.
enum class Bound : std::uint8_t {
  kExact,
  kLower,  ///< the true value is this or more: unfinished requests lie at or below it
};

/// A latency, or what is known of it.
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

/// Samples of one kind of request, which threads must not share.
class LatencyDistribution {
 public:
  /// A request that completed; `latency` >= 0, from arrival to completion.
  void add(Duration latency) { completed_.push_back(latency); }
  /// A request that had not completed when the run ended; `age` >= 0, from arrival to that end.
  void add_unfinished(Duration age) { unfinished_.push_back(age); }
  /// Adds all samples of another distribution.
  void merge(const LatencyDistribution& other);

  [[nodiscard]] std::size_t completed() const { return completed_.size(); }
  [[nodiscard]] std::size_t unfinished() const { return unfinished_.size(); }
  [[nodiscard]] bool empty() const { return completed_.empty() && unfinished_.empty(); }
  /// Samples of completed requests, in the order in which they were added.
  [[nodiscard]] const std::vector<Duration>& samples() const { return completed_; }
  /// Ages of unfinished requests, likewise.
  [[nodiscard]] const std::vector<Duration>& ages() const { return unfinished_; }
  /// Completed samples of at most `limit`.
  [[nodiscard]] std::size_t completed_within(Duration limit) const;

  /// Nearest-rank percentile; `percent` in (0, 100]. Nothing if there is no sample.
  /// O(n log n).
  [[nodiscard]] std::optional<LatencyValue> percentile(double percent) const;
  /// All at once, for one sort. Nothing if there is no sample.
  [[nodiscard]] std::optional<LatencySummary> summary() const;

 private:
  std::vector<Duration> completed_;
  std::vector<Duration> unfinished_;
};

}  // namespace bubblesim::observe
