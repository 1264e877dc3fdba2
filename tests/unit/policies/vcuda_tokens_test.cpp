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

/// Percent of the GPU that a process with a limit of 20 uses in the mean of 1000 periods of 120 ms,
/// if it launches kernels of 100 blocks whenever it may, and an SM runs a block in 100 us: 1200 a
/// period, 12 kernels.
std::int64_t used_by_limited(std::int64_t sms) {
  VcudaTokens tokens({.sms = sms}, 20);
  std::int64_t sum = 0;
  for (int period = 0; period < 1000; ++period) {
    std::int64_t kernels = 0;
    while (kernels < 12 * sms && tokens.passes(100)) ++kernels;
    const std::int64_t used = 100 * kernels / (12 * sms);
    tokens.refill(used, false);
    sum += used;
  }
  return sum / 1000;
}

/// A step has sms x sms x 8 tokens, a period of the whole GPU sms x 1200 blocks: 44 % of it at the
/// least difference with 132 SMs, 5 % with 16. HAMi-core's users report the same (its issue 274).
TEST(VcudaTokens, TheLimitHardlyThrottlesOnAGpuOfManySms) {
  EXPECT_NEAR(static_cast<double>(used_by_limited(16)), 20, 1);
  EXPECT_GT(used_by_limited(132), 60);
}

}  // namespace
}  // namespace bubblesim::policies
