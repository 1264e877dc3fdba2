#include "sim/observe/latency.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/nearest_rank.hpp"

namespace bubblesim::observe {
namespace {

/// A sample as it is ranked: unfinished ones after completed ones of the same length, because
/// their latency is that length or more.
using Sample = std::pair<Duration, Bound>;

std::vector<Sample> sorted(const std::vector<Duration>& completed,
                           const std::vector<Duration>& unfinished) {
  std::vector<Sample> samples;
  samples.reserve(completed.size() + unfinished.size());
  for (const Duration latency : completed) samples.emplace_back(latency, Bound::kExact);
  for (const Duration age : unfinished) samples.emplace_back(age, Bound::kLower);
  std::sort(samples.begin(), samples.end());
  return samples;
}

LatencyValue at_rank(const std::vector<Sample>& samples, double percent) {
  const auto rank = static_cast<std::size_t>(nearest_rank(percent, samples.size()));
  const auto end = samples.begin() + static_cast<std::ptrdiff_t>(rank);
  const bool censored = std::any_of(samples.begin(), end, [](const Sample& sample) {
    return sample.second == Bound::kLower;
  });
  return {samples[rank - 1].first, censored ? Bound::kLower : Bound::kExact};
}

/// Whole quotients and remainders apart: no overflow, the same on every machine.
Duration rounded_mean(const std::vector<Sample>& samples) {
  const auto count = static_cast<std::int64_t>(samples.size());
  std::int64_t mean = 0;
  std::int64_t rest = 0;
  for (const Sample& sample : samples) {
    mean += sample.first.count() / count;
    rest += sample.first.count() % count;
    mean += rest / count;
    rest %= count;
  }
  return Duration{mean + (2 * rest >= count ? 1 : 0)};
}

}  // namespace

void LatencyDistribution::merge(const LatencyDistribution& other) {
  completed_.insert(completed_.end(), other.completed_.begin(), other.completed_.end());
  unfinished_.insert(unfinished_.end(), other.unfinished_.begin(), other.unfinished_.end());
}

std::size_t LatencyDistribution::completed_within(Duration limit) const {
  return static_cast<std::size_t>(
      std::count_if(completed_.begin(), completed_.end(),
                    [limit](Duration latency) { return latency <= limit; }));
}

std::optional<LatencyValue> LatencyDistribution::percentile(double percent) const {
  BUBBLESIM_CHECK(percent > 0 && percent <= 100, "percentile outside (0, 100]");
  if (empty()) return std::nullopt;
  return at_rank(sorted(completed_, unfinished_), percent);
}

std::optional<LatencySummary> LatencyDistribution::summary() const {
  if (empty()) return std::nullopt;
  const std::vector<Sample> samples = sorted(completed_, unfinished_);
  const Bound mean_bound = unfinished_.empty() ? Bound::kExact : Bound::kLower;
  return LatencySummary{at_rank(samples, 50), at_rank(samples, 90), at_rank(samples, 95),
                        at_rank(samples, 99), at_rank(samples, 100),
                        LatencyValue{rounded_mean(samples), mean_bound}};
}

}  // namespace bubblesim::observe
