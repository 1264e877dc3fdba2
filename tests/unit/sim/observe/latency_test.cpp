#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "sim/observe/latency.hpp"

namespace bubblesim::observe {
namespace {

using std::chrono::milliseconds;

LatencyDistribution of_ms(std::initializer_list<int> latencies) {
  LatencyDistribution distribution;
  for (const int latency : latencies) distribution.add(milliseconds{latency});
  return distribution;
}

TEST(Latency, NoSampleHasNoPercentile) {
  EXPECT_FALSE(LatencyDistribution{}.percentile(50));
  EXPECT_FALSE(LatencyDistribution{}.summary());
}

TEST(Latency, OneSampleIsEveryPercentile) {
  const auto summary = of_ms({7}).summary();
  ASSERT_TRUE(summary);
  for (const LatencyValue& value : {summary->p50, summary->p99, summary->max, summary->mean}) {
    EXPECT_EQ(value, (LatencyValue{milliseconds{7}, Bound::kExact}));
  }
}

// Five samples: rank ceil(p/100 * 5) is 1 up to 20 %, 3 at 50 %, 4 at 80 %, 5 above.
TEST(Latency, PercentileIsTheNearestRankAndNeverInterpolated) {
  const auto distribution = of_ms({50, 20, 15, 40, 35});  // sorted: 15 20 35 40 50
  EXPECT_EQ(distribution.percentile(20)->value, milliseconds{15});
  EXPECT_EQ(distribution.percentile(20.1)->value, milliseconds{20});
  EXPECT_EQ(distribution.percentile(50)->value, milliseconds{35});
  EXPECT_EQ(distribution.percentile(80)->value, milliseconds{40});
  EXPECT_EQ(distribution.percentile(95)->value, milliseconds{50});
  EXPECT_EQ(distribution.percentile(100)->value, milliseconds{50});
}

// 1..100 ms: the p-th percentile of a hundred samples is the p-th sample exactly, although
// 0.95 * 100 and its like are not whole in binary.
TEST(Latency, RankOfAHundredSamplesIsThePercentage) {
  LatencyDistribution distribution;
  for (int i = 100; i >= 1; --i) distribution.add(milliseconds{i});
  for (int percent = 1; percent <= 100; ++percent) {
    EXPECT_EQ(distribution.percentile(percent)->value, milliseconds{percent});
  }
}

TEST(Latency, MeanIsRoundedToTheNearestNanosecond) {
  LatencyDistribution distribution;
  for (const int latency : {1, 2, 2}) distribution.add(Duration{latency});
  EXPECT_EQ(distribution.summary()->mean.value, Duration{2});  // 5 / 3 = 1.67
  distribution.add(Duration{1});
  EXPECT_EQ(distribution.summary()->mean.value, Duration{2});  // 6 / 4 = 1.5
  distribution.add(Duration{0});
  EXPECT_EQ(distribution.summary()->mean.value, Duration{1});  // 6 / 5 = 1.2
}

TEST(Latency, MeanOfHugeSamplesDoesNotOverflow) {
  LatencyDistribution distribution;
  for (int i = 0; i < 3; ++i) distribution.add(Duration::max());
  EXPECT_EQ(distribution.summary()->mean.value, Duration::max());
}

TEST(Latency, MergeIsTheDistributionOfAllSamples) {
  auto left = of_ms({1, 4});
  left.merge(of_ms({3, 2}));
  EXPECT_EQ(left.completed(), 4U);
  EXPECT_EQ(left.percentile(50)->value, milliseconds{2});
  EXPECT_EQ(left.percentile(75)->value, milliseconds{3});
}

// Sorted: 10, 20, 30 done, 25 so far. p50 is rank 2 (20, exact), p75 is rank 3 (25 or more).
TEST(Latency, PercentileAtOrAboveAnUnfinishedRequestIsALowerBound) {
  auto distribution = of_ms({10, 20, 30});
  distribution.add_unfinished(milliseconds{25});
  EXPECT_EQ(*distribution.percentile(50), (LatencyValue{milliseconds{20}, Bound::kExact}));
  EXPECT_EQ(*distribution.percentile(75), (LatencyValue{milliseconds{25}, Bound::kLower}));
  EXPECT_EQ(*distribution.percentile(100), (LatencyValue{milliseconds{30}, Bound::kLower}));
  EXPECT_EQ(distribution.summary()->mean, (LatencyValue{Duration{21'250'000}, Bound::kLower}));
}

TEST(Latency, UnfinishedRequestAsOldAsACompletedOneRanksBehindIt) {
  auto distribution = of_ms({10});
  distribution.add_unfinished(milliseconds{10});
  EXPECT_EQ(distribution.percentile(50)->bound, Bound::kExact);
  EXPECT_EQ(distribution.percentile(51)->bound, Bound::kLower);
}

TEST(Latency, OnlyUnfinishedRequestsStillGiveLowerBounds) {
  LatencyDistribution distribution;
  distribution.add_unfinished(milliseconds{9});
  EXPECT_EQ(*distribution.percentile(95), (LatencyValue{milliseconds{9}, Bound::kLower}));
  EXPECT_EQ(distribution.unfinished(), 1U);
}

TEST(Latency, CompletedWithinCountsTheLimitItself) {
  EXPECT_EQ(of_ms({99, 100, 101}).completed_within(milliseconds{100}), 2U);
}

LatencyHistogram histogram_of(const std::vector<std::int64_t>& samples) {
  LatencyHistogram histogram;
  for (const std::int64_t ns : samples) histogram.add(Duration{ns});
  return histogram;
}

std::int64_t percentile(const LatencyHistogram& histogram, double percent) {
  return histogram.percentile(percent)->value.count();
}

TEST(LatencyHistogram, small_values_are_exact) {
  const LatencyHistogram histogram = histogram_of({0, 1, 5, 127});
  EXPECT_EQ(percentile(histogram, 25), 0);
  EXPECT_EQ(percentile(histogram, 75), 5);
  EXPECT_EQ(percentile(histogram, 100), 127);
}

// Of 1000 to 1003 (a bucket of four, from 1000), the middle rounded down is 1001.
TEST(LatencyHistogram, a_bucket_answers_with_its_middle) {
  EXPECT_EQ(percentile(histogram_of({1000, 9000}), 50), 1001);
  EXPECT_EQ(percentile(histogram_of({1003, 9000}), 50), 1001);
  EXPECT_EQ(percentile(histogram_of({1004, 9000}), 50), 1005);
}

// 12,074,379 lies in a bucket of 65,536 from 12,058,624 on, whose middle is 12,091,391: no
// percentile lies above the longest sample.
TEST(LatencyHistogram, the_longest_sample_is_exact) {
  const LatencyHistogram alike = histogram_of({12'074'379, 12'074'379});
  EXPECT_EQ(percentile(alike, 50), 12'074'379);
  EXPECT_EQ(percentile(alike, 100), 12'074'379);
  LatencyHistogram merged = histogram_of({1000});
  merged.merge(alike);
  EXPECT_EQ(percentile(merged, 100), 12'074'379);
  merged.add_unfinished(Duration{12'100'001});
  EXPECT_EQ(percentile(merged, 100), 12'100'001);
}

// What was stored knows counts only: the middle of the bucket stands for the longest, too.
TEST(LatencyHistogram, the_longest_sample_is_not_stored) {
  const LatencyHistogram histogram = histogram_of({1000, 12'074'379});
  const auto read = LatencyHistogram::decode(histogram.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(percentile(*read, 100), 12'091'391);
  EXPECT_EQ(percentile(*read, 50), 1001);
}

TEST(LatencyHistogram, percentiles_are_off_by_less_than_one_percent_over_the_whole_range) {
  std::mt19937_64 random(7);
  for (int power = 0; power < 62; ++power) {
    LatencyHistogram histogram;
    LatencyDistribution exact;
    for (int i = 0; i < 50; ++i) {
      const auto low = std::int64_t{1} << power;
      const auto above = random() % static_cast<std::uint64_t>(low);
      const Duration latency{low + static_cast<std::int64_t>(above)};
      histogram.add(latency);
      exact.add(latency);
    }
    for (const double percent : {1.0, 50.0, 95.0, 100.0}) {
      const double truth = static_cast<double>(exact.percentile(percent)->value.count());
      const double got = static_cast<double>(percentile(histogram, percent));
      EXPECT_LE(std::abs(got - truth), 0.005 * truth + 0.5) << power << " " << percent;
    }
  }
}

TEST(LatencyHistogram, the_longest_duration_has_a_bucket) {
  EXPECT_GT(percentile(histogram_of({Duration::max().count()}), 50),
            Duration::max().count() / 100 * 99);
}

TEST(LatencyHistogram, unfinished_requests_make_what_lies_above_them_a_lower_bound) {
  LatencyHistogram histogram;
  for (const int latency : {10, 20, 30}) histogram.add(milliseconds{latency});
  histogram.add_unfinished(milliseconds{25});
  EXPECT_EQ(histogram.percentile(50)->bound, Bound::kExact);
  EXPECT_EQ(histogram.percentile(75)->bound, Bound::kLower);
  EXPECT_EQ(histogram.percentile(100)->bound, Bound::kLower);
  EXPECT_EQ(histogram.completed(), 3U);
  EXPECT_EQ(histogram.unfinished(), 1U);
}

TEST(LatencyHistogram, merging_in_any_order_gives_the_same) {
  LatencyHistogram ab = histogram_of({1, 2'000'000});
  ab.merge(histogram_of({3'000, 1}));
  LatencyHistogram ba = histogram_of({3'000, 1});
  ba.merge(histogram_of({2'000'000, 1}));
  EXPECT_EQ(ab, ba);
  EXPECT_EQ(ab, histogram_of({1, 1, 3'000, 2'000'000}));
}

TEST(LatencyHistogram, bytes_read_back_and_damaged_ones_are_refused) {
  LatencyHistogram histogram = histogram_of({0, 1'000'000, 1'000'000, Duration::max().count()});
  histogram.add_unfinished(milliseconds{3});
  const std::vector<std::uint8_t> bytes = histogram.encode();
  const auto read = LatencyHistogram::decode(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, histogram);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(LatencyHistogram::decode(std::span(bytes).first(length))) << length;
  }
  std::vector<std::uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(LatencyHistogram::decode(longer));
  EXPECT_FALSE(LatencyHistogram::decode(std::vector<std::uint8_t>{1, 5, 0, 0}));  // a count of 0
}

TEST(LatencyHistogram, without_samples_there_is_no_percentile) {
  EXPECT_FALSE(LatencyHistogram{}.percentile(50));
  EXPECT_EQ(LatencyHistogram{}.encode(), (std::vector<std::uint8_t>{0, 0}));
}

}  // namespace
}  // namespace bubblesim::observe
