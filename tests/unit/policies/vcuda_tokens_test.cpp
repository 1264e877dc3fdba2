#include "policies/vcuda_tokens.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

/// A step is 100 x 100 x 2048 / 256 = 80,000 tokens; the bucket holds 2048 x 100 x 32.
constexpr VcudaConstants kConstants{.sms = 100};
constexpr std::int64_t kMost = 6'553'600;

TEST(VcudaTokens, ALaunchOfAnySizePassesWhileThereAreNotLessThanNone) {
  VcudaTokens tokens(kConstants, 50);
  EXPECT_TRUE(tokens.passes(1'000));
  EXPECT_EQ(tokens.tokens(), -1'000);
  EXPECT_FALSE(tokens.passes(1));
}

/// 10 below the limit: 80,000. 40 below: 320,000, and 40 x 2 / 51 times as much, for that is more
/// than half of the limit. 3 above counts as 5: 40,000 less.
TEST(VcudaTokens, TheShareFollowsTheDistanceToTheLimit) {
  VcudaTokens tokens(kConstants, 50);
  tokens.refill(40, false);
  EXPECT_EQ(tokens.tokens(), 80'000);
  tokens.refill(10, false);
  EXPECT_EQ(tokens.tokens(), 80'000 + 80'000 + 501'960);
  tokens.refill(53, false);
  EXPECT_EQ(tokens.tokens(), 661'960 + 581'960 - 40'000);
}

TEST(VcudaTokens, NeitherShareNorBucketLeavesItsBounds) {
  VcudaTokens tokens(kConstants, 50);
  tokens.refill(100, false);
  EXPECT_EQ(tokens.tokens(), 0);
  for (int i = 0; i < 100; ++i) tokens.refill(10, false);
  EXPECT_EQ(tokens.tokens(), kMost);
}

/// Alone, and below 5 % of 50: the bucket is set, again and again, to a first share.
TEST(VcudaTokens, AProcessThatHasJustBegunKeepsItsShare) {
  VcudaTokens tokens(kConstants, 50);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(tokens.passes(5));
    tokens.refill(0, true);
    EXPECT_EQ(tokens.tokens(), 784'313);  // 400,000 x 100 / 51
  }
}

}  // namespace
}  // namespace bubblesim::policies
