// Requests in front of a service, and when the next batch of them starts (program::Batching), for a
// process that looks at them when it is free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "capture/replay/job_plan.hpp"

namespace bubblesim::capture {

class RequestQueue {
 public:
  /// `mode` outlives it. Instants are since the job's time 0.
  explicit RequestQueue(const ServeMode& mode) : mode_(mode) {}

  /// When the next batch may start, at `now` or later: when a batch is due. Nothing: there are
  /// no more requests. Offline: at once.
  [[nodiscard]] std::optional<Duration> next_start(Duration now) const;

  /// Takes the batch that starts now, and says how many requests it has. Precondition: `now` is at
  /// least what next_start() said.
  std::uint64_t take(Duration now);
  /// Arrivals of the batch that was taken last; offline: empty.
  [[nodiscard]] std::span<const Duration> batch() const;
  /// The batch was served.
  void served() { first_ = next_; }

  /// Requests that have arrived by `end` and were not served.
  [[nodiscard]] std::vector<Duration> unfinished(Duration end) const;

 private:
  const ServeMode& mode_;
  std::size_t first_ = 0;  ///< of those taken and not served
  std::size_t next_ = 0;   ///< not taken
};

}  // namespace bubblesim::capture
