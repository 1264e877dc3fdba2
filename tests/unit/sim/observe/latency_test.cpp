#include "sim/observe/latency.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace bubblesim::observe
