#include "capture/replay/request_queue.hpp"

#include <algorithm>

namespace bubblesim::capture {

std::optional<Duration> RequestQueue::next_start(Duration now) const {
  if (!mode_.online) return now;
  const std::vector<Duration>& arrivals = mode_.arrivals;
  if (next_ == arrivals.size()) return std::nullopt;
  const Duration due = mode_.batching.due(
      arrivals.size() - next_, [&](std::size_t i) { return arrivals[next_ + i]; });
  return std::max(due, now);
}

std::uint64_t RequestQueue::take(Duration now) {
  if (!mode_.online) return mode_.batching.max_batch;
  first_ = next_;
  const auto first = mode_.arrivals.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto arrived = std::upper_bound(first, mode_.arrivals.end(), now);
  next_ += mode_.batching.batch_size(static_cast<std::size_t>(arrived - first));
  return next_ - first_;
}

std::span<const Duration> RequestQueue::batch() const {
  return std::span(mode_.arrivals).subspan(first_, next_ - first_);
}

std::vector<Duration> RequestQueue::unfinished(Duration end) const {
  if (!mode_.online) return {};
  const auto arrived = std::upper_bound(mode_.arrivals.begin(), mode_.arrivals.end(), end);
  const auto first = mode_.arrivals.begin() + static_cast<std::ptrdiff_t>(first_);
  return first < arrived ? std::vector<Duration>(first, arrived) : std::vector<Duration>();
}

}  // namespace bubblesim::capture
