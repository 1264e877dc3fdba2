#include "capture/replay/request_queue.hpp"

#include <algorithm>

namespace bubblesim::capture {

std::optional<Duration> RequestQueue::next_start(Duration now) const {
  if (!mode_.online) return now;
  const std::vector<Duration>& arrivals = mode_.arrivals;
  if (next_ == arrivals.size()) return std::nullopt;
  Duration start = arrivals[next_] + mode_.max_wait;
  const std::size_t last = next_ + mode_.max_batch - 1;
  if (last < arrivals.size()) start = std::min(start, arrivals[last]);
  return std::max(start, now);
}

std::uint64_t RequestQueue::take(Duration now) {
  if (!mode_.online) return mode_.max_batch;
  first_ = next_;
  while (next_ < mode_.arrivals.size() && mode_.arrivals[next_] <= now &&
         next_ - first_ < mode_.max_batch) {
    ++next_;
  }
  return next_ - first_;
}

std::span<const Duration> RequestQueue::batch() const {
  return std::span(mode_.arrivals).subspan(first_, next_ - first_);
}

double RequestQueue::factor(std::uint64_t requests) const {
  const std::uint64_t parts = (requests + mode_.requests_per_pass - 1) / mode_.requests_per_pass;
  return 1.0 + static_cast<double>(parts - 1) * mode_.batch_cost;
}

std::vector<Duration> RequestQueue::unfinished(Duration end) const {
  if (!mode_.online) return {};
  const auto arrived = std::upper_bound(mode_.arrivals.begin(), mode_.arrivals.end(), end);
  const auto first = mode_.arrivals.begin() + static_cast<std::ptrdiff_t>(first_);
  return first < arrived ? std::vector<Duration>(first, arrived) : std::vector<Duration>();
}

}  // namespace bubblesim::capture
