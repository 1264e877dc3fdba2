// Orion's SM needs, its search for the SM threshold, and its drain rule.
#include "policies/orion_rules.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;

policy::LaunchInfo kernel_launch(std::uint64_t blocks, std::uint64_t sm_blocks) {
  policy::LaunchInfo result;
  result.blocks = blocks;
  result.sm_blocks = sm_blocks;
  return result;
}

/// 80 SMs of 8 blocks: 640 at once.
TEST(orion_rules, count_sms_by_the_blocks_that_an_sm_holds) {
  EXPECT_EQ(sms_needed(kernel_launch(8, 640), 80), 1u);
  EXPECT_EQ(sms_needed(kernel_launch(9, 640), 80), 2u);
  EXPECT_EQ(sms_needed(kernel_launch(640, 640), 80), 80u);
  EXPECT_EQ(sms_needed(kernel_launch(6400, 640), 80), 800u);  // more than there are
  EXPECT_EQ(sms_needed(kernel_launch(0, 640), 80), 0u);
  EXPECT_EQ(sms_needed(kernel_launch(9, 0), 80), 9u);  // occupancy not known
}

/// The largest need is 100: 50. In 2 iterations of 10 ms: low 50, 75; of 12 ms: high 75, 62; of
/// 10 ms: low 62, 68; and so on.
TEST(orion_rules, search_the_threshold_by_halves) {
  SmThreshold threshold(2);
  EXPECT_EQ(threshold.value(), 0u);
  threshold.see(40);
  threshold.see(100);
  EXPECT_EQ(threshold.value(), 50u);
  const auto two = [&threshold](Duration length) {
    threshold.end_iteration(length, 11ms);
    threshold.end_iteration(length, 11ms);
    return threshold.value();
  };
  EXPECT_EQ(two(10ms), 75u);
  EXPECT_EQ(two(12ms), 62u);
  threshold.see(1000);  // too late
  EXPECT_EQ(two(10ms), 68u);
  EXPECT_EQ(two(12ms), 65u);
  EXPECT_EQ(two(12ms), 63u);
  EXPECT_EQ(two(12ms), 62u);
  EXPECT_EQ(two(12ms), 62u);  // where the lower bound is: it stays
}

TEST(orion_rules, average_over_the_step) {
  SmThreshold threshold(2);
  threshold.see(100);
  threshold.end_iteration(5ms, 11ms);
  EXPECT_EQ(threshold.value(), 50u);
  threshold.end_iteration(16ms, 11ms);  // the mean is 10.5
  EXPECT_EQ(threshold.value(), 75u);
}

/// At most 10 us since the last drain: 6 and 6 exceed it, then both must complete.
TEST(orion_rules, drain_when_the_sum_is_exceeded) {
  DrainRule drain;
  EXPECT_TRUE(drain.lets_go());
  drain.launch(6us, 1, 10us);
  EXPECT_TRUE(drain.lets_go());
  drain.launch(6us, 1, 10us);
  EXPECT_FALSE(drain.lets_go());
  drain.complete(1);
  EXPECT_FALSE(drain.lets_go());
  drain.complete(1);
  EXPECT_TRUE(drain.lets_go());
  drain.launch(6us, 1, 10us);  // the sum began anew
  EXPECT_TRUE(drain.lets_go());
}

/// The sum does not shrink with completions.
TEST(orion_rules, count_completed_work_until_a_drain) {
  DrainRule drain;
  for (int i = 0; i < 2; ++i) {
    drain.launch(5us, 1, 9us);
    drain.complete(1);
  }
  drain.launch(1us, 1, 9us);  // 11 us in all
  EXPECT_FALSE(drain.lets_go());
}

}  // namespace
}  // namespace bubblesim::policies
