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

namespace {

using Layout = LogBuckets<7>;
constexpr std::uint32_t kMaxBucket = Layout::bucket_of(Duration::max());

/// The middle of a bucket, rounded down.
Duration middle_of(std::uint32_t bucket) {
  return Layout::low_of(bucket) + (Layout::width_of(bucket) - Duration{1}) / 2;
}

void put_varint(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) bytes.push_back(static_cast<std::uint8_t>(value | 0x80U));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

bool take_varint(std::span<const std::uint8_t>& bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const std::uint64_t byte = bytes.front();
    bytes = bytes.subspan(1);
    if (shift == 63 && byte > 1) return false;
    value |= (byte & 0x7FU) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

using Buckets = std::map<std::uint32_t, std::uint64_t>;

/// Number of buckets, then for each: its distance from the one before, its count.
void put(std::vector<std::uint8_t>& bytes, const Buckets& buckets) {
  put_varint(bytes, buckets.size());
  std::uint32_t before = 0;
  for (const auto& [bucket, count] : buckets) {
    put_varint(bytes, bucket - before);
    put_varint(bytes, count);
    before = bucket;
  }
}

bool take(std::span<const std::uint8_t>& bytes, Buckets& buckets, std::uint64_t& total) {
  std::uint64_t size = 0;
  if (!take_varint(bytes, size) || size > kMaxBucket + 1) return false;
  std::uint64_t bucket = 0;
  for (std::uint64_t i = 0; i < size; ++i) {
    std::uint64_t step = 0, count = 0;
    if (!take_varint(bytes, step) || !take_varint(bytes, count)) return false;
    const bool rises = i == 0 || step > 0;
    if (!rises || count == 0 || step > kMaxBucket || bucket + step > kMaxBucket) return false;
    if (total + count < total) return false;
    bucket += step;
    total += count;
    buckets.emplace_hint(buckets.end(), static_cast<std::uint32_t>(bucket), count);
  }
  return true;
}

}  // namespace

LatencyHistogram::LatencyHistogram(const LatencyDistribution& distribution) {
  for (const Duration latency : distribution.samples()) add(latency);
  for (const Duration age : distribution.ages()) add_unfinished(age);
}

void LatencyHistogram::add(Duration latency) {
  ++completed_[Layout::bucket_of(latency)];
  ++completed_total_;
  longest_ = std::max(longest_, latency);
}

void LatencyHistogram::add_unfinished(Duration age) {
  ++unfinished_[Layout::bucket_of(age)];
  ++unfinished_total_;
  longest_ = std::max(longest_, age);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  for (const auto& [bucket, count] : other.completed_) completed_[bucket] += count;
  for (const auto& [bucket, count] : other.unfinished_) unfinished_[bucket] += count;
  completed_total_ += other.completed_total_;
  unfinished_total_ += other.unfinished_total_;
  longest_ = std::max(longest_, other.longest_);
}

std::optional<LatencyValue> LatencyHistogram::percentile(double percent) const {
  BUBBLESIM_CHECK(percent > 0 && percent <= 100, "percentile outside (0, 100]");
  const std::uint64_t total = completed_total_ + unfinished_total_;
  if (total == 0) return std::nullopt;
  const std::uint64_t rank = nearest_rank(percent, total);
  std::uint64_t seen = 0;
  auto done = completed_.begin();
  auto open = unfinished_.begin();
  while (true) {
    const bool from_done = open == unfinished_.end() ||
                           (done != completed_.end() && done->first <= open->first);
    const auto& [bucket, count] = from_done ? *done++ : *open++;
    seen += count;
    if (seen < rank) continue;
    const bool censored = !unfinished_.empty() && unfinished_.begin()->first <= bucket;
    const Duration value = rank == total ? longest_ : std::min(middle_of(bucket), longest_);
    return LatencyValue{value, censored ? Bound::kLower : Bound::kExact};
  }
}

std::vector<std::uint8_t> LatencyHistogram::encode() const {
  std::vector<std::uint8_t> bytes;
  put(bytes, completed_);
  put(bytes, unfinished_);
  return bytes;
}

Result<LatencyHistogram> LatencyHistogram::decode(std::span<const std::uint8_t> bytes) {
  LatencyHistogram result;
  const bool right = take(bytes, result.completed_, result.completed_total_) &&
                     take(bytes, result.unfinished_, result.unfinished_total_) && bytes.empty();
  if (!right) return fail({}, {}, "found bytes that are no latency histogram");
  for (const Buckets* buckets : {&result.completed_, &result.unfinished_}) {
    if (buckets->empty()) continue;
    result.longest_ = std::max(result.longest_, middle_of(buckets->rbegin()->first));
  }
  return result;
}

LatencyBuckets buckets_of(const LatencyHistogram& histogram) {
  Buckets all = histogram.completed_;
  all.insert(histogram.unfinished_.begin(), histogram.unfinished_.end());
  LatencyBuckets result;
  if (all.empty()) return result;
  const auto count_in = [](const Buckets& buckets, std::uint32_t bucket) {
    const auto found = buckets.find(bucket);
    return found == buckets.end() ? 0 : found->second;
  };
  for (std::uint32_t bucket = all.begin()->first; bucket <= all.rbegin()->first; ++bucket) {
    result.edges.push_back(Layout::low_of(bucket));
    result.middles.push_back(middle_of(bucket));
    result.completed.push_back(count_in(histogram.completed_, bucket));
    result.unfinished.push_back(count_in(histogram.unfinished_, bucket));
  }
  const std::uint32_t last = all.rbegin()->first;
  result.edges.push_back(last == kMaxBucket ? Duration::max() : Layout::low_of(last + 1));
  return result;
}

}  // namespace bubblesim::observe
