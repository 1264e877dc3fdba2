// Seeded streams: the same numbers on every machine, for ever.
#include <gtest/gtest.h>

#include "sim/base/counters.hpp"
#include "sim/base/nearest_rank.hpp"
#include "sim/base/random.hpp"

namespace bubblesim {
namespace {

// Written by the first version of the code; a change of any is a change of all results.
TEST(Random, TheFirstNumbersOfAStreamNeverChange) {
  RandomStream stream(1, "arrivals");
  EXPECT_EQ(stream.uniform(), 0.43812014121584386);
  EXPECT_EQ(stream.uniform(), 0.97790481001508911);
  EXPECT_EQ(stream.uniform(), 0.77745118405452029);
  EXPECT_EQ(stream.uniform(), 0.46174832860724663);
  EXPECT_DOUBLE_EQ(stream.normal(1.0, 0.1), 0.95747373322993068);
  EXPECT_DOUBLE_EQ(stream.gamma(2.0, 0.5), 2.3203506301622285);
  EXPECT_DOUBLE_EQ(stream.exponential(2.0), 3.9695160391276585);
}

TEST(Random, EqualSeedAndNameGiveEqualNumbers) {
  RandomStream a(7, "x");
  RandomStream b(7, "x");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.uniform(), b.uniform());
}

TEST(Random, AnotherNameOrSeedGivesOtherNumbers) {
  RandomStream base(7, "x");
  const double first = base.uniform();
  EXPECT_NE(first, RandomStream(7, "y").uniform());
  EXPECT_NE(first, RandomStream(8, "x").uniform());
}

TEST(Random, MeansAreThoseAskedFor) {
  RandomStream stream(3, "means");
  constexpr int kDraws = 100000;
  double exponential = 0;
  double gamma = 0;
  double gamma_squared = 0;
  for (int i = 0; i < kDraws; ++i) {
    exponential += stream.exponential(2.0);
    const double value = stream.gamma(4.0, 0.5);
    gamma += value;
    gamma_squared += value * value;
  }
  EXPECT_NEAR(exponential / kDraws, 2.0, 0.03);  // deviation of the mean: 2 / sqrt(1e5) = 0.006
  const double mean = gamma / kDraws;
  EXPECT_NEAR(mean, 4.0, 0.03);
  EXPECT_NEAR(gamma_squared / kDraws - mean * mean, 4.0, 0.2);  // (0.5 * 4)^2
}

TEST(UpperMedian, IsTheUpperOfTwoMiddleValues) {
  EXPECT_EQ(upper_median<int>({9, 1, 4}), 4);
  EXPECT_EQ(upper_median<int>({4, 9, 1, 7}), 7);
  EXPECT_EQ(upper_median<int>({}), 0);
}

TEST(InterpolatedQuantile, LiesBetweenTwoValues) {
  EXPECT_DOUBLE_EQ(interpolated_quantile({1, 2, 3}, 0.5), 2);
  EXPECT_DOUBLE_EQ(interpolated_quantile({1, 2}, 0.9), 1.9);
  EXPECT_DOUBLE_EQ(interpolated_quantile({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(interpolated_quantile({}, 0.5), 0);
}

// Data-quality counters.

constexpr CounterSpec kOrphans{"orphan_kernels", Severity::kLoss, "Kernels without a launch."};
constexpr CounterSpec kClamped{"clamped", Severity::kNotice, "Durations set to zero."};
constexpr CounterSpec kBroken{"broken", Severity::kError, "Records that contradict."};

class Counters : public ::testing::Test {
 protected:
  CounterSet set;
};

TEST_F(Counters, CountsAddUpByName) {
  set.add(kOrphans);
  set.add(kOrphans, 4);
  EXPECT_EQ(set.count("orphan_kernels"), 5U);
  EXPECT_EQ(set.count("never_counted"), 0U);
}

TEST_F(Counters, AZeroCountIsNotHeld) {
  set.add(kOrphans, 0);
  EXPECT_TRUE(set.empty());
}

TEST_F(Counters, TheyComeInNameOrderWithSeverityAndHelp) {
  set.add(kOrphans);
  set.add(kClamped);
  ASSERT_EQ(set.begin()->first, "clamped");
  EXPECT_EQ(set.begin()->second.severity, Severity::kNotice);
  EXPECT_EQ(set.begin()->second.help, "Durations set to zero.");
  EXPECT_EQ(std::next(set.begin())->first, "orphan_kernels");
}

TEST_F(Counters, MergingAddsTheOthersCounts) {
  CounterSet a;
  a.add(kOrphans, 2);
  CounterSet b;
  b.add(kOrphans, 3);
  b.add(kClamped, 1);
  a.merge(b);
  EXPECT_EQ(a.count("orphan_kernels"), 5U);
  EXPECT_EQ(a.count("clamped"), 1U);
}

TEST_F(Counters, OnlySeverityErrorIsAnError) {
  set.add(kOrphans);
  EXPECT_FALSE(set.has_error());
  set.add(kBroken);
  EXPECT_TRUE(set.has_error());
}

TEST_F(Counters, ACountThatIsTakenAnewReplacesTheOldOne) {
  set.add(kOrphans, 3);
  set.reset(kOrphans, 2);
  EXPECT_EQ(set.count("orphan_kernels"), 2U);
  set.reset(kOrphans, 0);
  EXPECT_TRUE(set.empty());
}

TEST_F(Counters, SeveritiesHaveNames) {
  EXPECT_EQ(severity_name(Severity::kInfo), "info");
  EXPECT_EQ(severity_name(Severity::kNotice), "notice");
  EXPECT_EQ(severity_name(Severity::kLoss), "loss");
  EXPECT_EQ(severity_name(Severity::kError), "error");
}

}  // namespace
}  // namespace bubblesim
