// Waves alone: what ends when, without a GPU around it.
#include "sim/gpu/waves.hpp"

#include <gtest/gtest.h>

namespace bubblesim::gpu {
namespace {

using Ns = Duration;

class WavesTest : public ::testing::Test {
 protected:
  Waves waves;
};

TEST_F(WavesTest, LastExactlyTheirSoloDuration) {
  // 10 ns in 3 waves: a wave is 3.33 ns, and 3 of them are 10 ns, not 9 and not 12.
  waves.start(Ns{10}, 20, 8);  // 8 + 8 + 4
  waves.place(8);
  EXPECT_EQ(waves.until_last_end(), Ns{10});
  EXPECT_EQ(waves.until_first_end(), Ns{4});       // 3.33, rounded up to see it ended
  EXPECT_EQ(waves.until_last_placed(), Ns{7});   // 6.67: then 4 follow 8
}

TEST_F(WavesTest, RoundingDoesNotAddUpFromWaveToWave) {
  waves.start(Ns{10}, 24, 8);
  waves.place(8);
  Ns now{0};
  while (!waves.finished()) {  // refilled by hand, one event a wave
    const Ns step = waves.until_first_end();
    now += step;
    const Waves::Passed passed = waves.pass(step, Refill::kNone);
    if (waves.unplaced() > 0) waves.place(passed.freed);
  }
  EXPECT_EQ(now, Ns{10});
}

TEST_F(WavesTest, SkippedRoundsLeaveTheSameStateAsSingleSteps) {
  Waves skipped;
  Waves stepped;
  for (Waves* each : {&skipped, &stepped}) {
    each->start(Ns{1000}, 1003, 8);  // 126 waves
    each->place(5);
    each->pass(Ns{3}, Refill::kSelf);
    each->place(3);  // a second cohort, 3 ns behind
  }
  skipped.pass(Ns{777}, Refill::kSelf);
  for (int i = 0; i < 777; ++i) stepped.pass(Ns{1}, Refill::kSelf);
  EXPECT_EQ(skipped.unplaced(), stepped.unplaced());
  EXPECT_EQ(skipped.resident(), 8u);
  EXPECT_EQ(skipped.until_first_end(), stepped.until_first_end());
  EXPECT_EQ(skipped.until_last_end(), stepped.until_last_end());
}

TEST_F(WavesTest, CountBlocksOverTime) {
  // 12 blocks, 8 at once, 20 ns: 8 for 10 ns, 4 for 10 ns = 120 block ns.
  waves.start(Ns{20}, 12, 8);
  waves.place(8);
  EXPECT_DOUBLE_EQ(waves.pass(Ns{15}, Refill::kSelf).block_ns, 80 + 20);
  EXPECT_DOUBLE_EQ(waves.pass(Ns{5}, Refill::kSelf).block_ns, 20);
  EXPECT_TRUE(waves.finished());
}

TEST_F(WavesTest, RunAtTheRateTheyAreGiven) {
  waves.start(Ns{100}, 8, 8);
  waves.place(8);
  waves.pass(Ns{40}, Refill::kSelf);
  waves.set_rate(0.5);
  EXPECT_EQ(waves.until_last_end(), Ns{120});  // 60 ns of work at half speed
  waves.set_rate(1.0 / 3);
  EXPECT_EQ(waves.until_last_end(), Ns{180});
}

TEST_F(WavesTest, HeldBlocksNeverEnd) {
  waves.hold(4);
  waves.place(4);
  waves.pass(Ns{1'000'000'000}, Refill::kNone);
  EXPECT_EQ(waves.resident(), 4u);
  EXPECT_EQ(waves.until_last_end(), Ns::max());
}

TEST_F(WavesTest, ATimelessKernelEndsAtOnce) {
  waves.start(Ns{0}, 1'000'000, 8);
  waves.place(8);
  EXPECT_EQ(waves.until_last_end(), Ns{0});
  waves.pass(Ns{0}, Refill::kNone);
  EXPECT_TRUE(waves.finished());
}

TEST_F(WavesTest, StayExactForAMillionWaves) {
  waves.start(Ns{7'000'000'001}, 8'000'000, 8);
  waves.place(8);
  waves.pass(Ns{3'333'333'333}, Refill::kSelf);
  EXPECT_EQ(waves.until_last_end(), Ns{3'666'666'668});
}

}  // namespace
}  // namespace bubblesim::gpu
