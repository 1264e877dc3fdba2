#include "sim/step_cost/time_table.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost {
namespace {

TEST(TimeCurve, LiesOnTheLineBetweenTwoPoints) {
  Beyond beyond;
  const TimeCurve curve({10, 20}, {100, 300});
  EXPECT_DOUBLE_EQ(curve.interpolated(12.5, beyond), 150);  // a quarter of 200 above 100
  EXPECT_DOUBLE_EQ(curve.interpolated(20, beyond), 300);
  EXPECT_EQ(beyond.lookups, 0U);
}

TEST(TimeCurve, IsAStairOfItsNextPointWhereProductsWorkInTiles) {
  Beyond beyond;
  const TimeCurve curve({10, 20}, {100, 300});
  EXPECT_DOUBLE_EQ(curve.at_least(10, beyond), 100);
  EXPECT_DOUBLE_EQ(curve.at_least(10.5, beyond), 300);
  EXPECT_DOUBLE_EQ(curve.at_least(3, beyond), 100);
  EXPECT_EQ(beyond.lookups, 0U);
}

TEST(TimeCurve, HoldsItsFirstTimeBelowAndCountsWhatIsBeyond) {
  Beyond beyond;
  const TimeCurve curve({10, 20}, {100, 300});
  EXPECT_DOUBLE_EQ(curve.interpolated(1, beyond), 100);
  EXPECT_EQ(beyond.lookups, 0U);
  EXPECT_DOUBLE_EQ(curve.interpolated(30, beyond), 500);  // 20 us a unit goes on
  EXPECT_DOUBLE_EQ(curve.at_least(30, beyond), 500);
  EXPECT_EQ(beyond.lookups, 2U);
}

// The last two points say -10 us a unit: 100 us would be left at 15, and -50 at 30.
TEST(TimeCurve, DoesNotFallBelowItsLastTimeBeyondIt) {
  Beyond beyond;
  const TimeCurve curve({5, 10}, {200, 150});
  EXPECT_DOUBLE_EQ(curve.interpolated(7.5, beyond), 175);
  EXPECT_DOUBLE_EQ(curve.interpolated(15, beyond), 150);
  EXPECT_DOUBLE_EQ(curve.at_least(30, beyond), 150);
  EXPECT_EQ(beyond.lookups, 2U);
}

// Falls by 90 us along the first axis, and rises by 10 us along the second.
TEST(TimeGrid, DoesNotFallBelowItsEdgeBeyondIt) {
  Beyond beyond;
  const TimeGrid grid({{0, 1}, {0, 10}}, {100, 110, 10, 20});
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{3.0, 5.0}, beyond), 15);
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{1.0, 20.0}, beyond), 30);
}

TEST(TimeGrid, IsLinearAlongEachAxis) {
  Beyond beyond;
  // 1 + 2 x + 30 y + 4 x y at x = 0, 1 and y = 0, 10.
  const TimeGrid grid({{0, 1}, {0, 10}}, {1, 301, 3, 343});
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{0.5, 5.0}, beyond), 1 + 1 + 150 + 10);
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{1.0, 0.0}, beyond), 3);
  EXPECT_EQ(beyond.lookups, 0U);
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{2.0, 10.0}, beyond), 385);
  EXPECT_EQ(beyond.lookups, 1U);
}

TEST(ExpertTable, EndsEachRowAtAsManyExpertsAsItsTokensKeepBusy) {
  Beyond beyond;
  const ExpertTable experts{{1, 3}, {TimeCurve({8}, {50}), TimeCurve({8, 24}, {60, 140})}};
  // At 2 tokens: half between 50 us, whatever is busy, and 100 us at 16 busy experts.
  EXPECT_DOUBLE_EQ(experts.interpolated(2, 16, beyond), 75);
  EXPECT_EQ(beyond.lookups, 0U);
}

}  // namespace
}  // namespace bubblesim::step_cost
