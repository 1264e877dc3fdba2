#include "sim/base/nearest_rank.hpp"

#include <gtest/gtest.h>

namespace bubblesim {
namespace {

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

}  // namespace
}  // namespace bubblesim
