// PipeFill's execution plan: sums that can be checked by hand.
#include "policies/fill_plan.hpp"

#include <gtest/gtest.h>

#include "tests/bytes.hpp"

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;

constexpr ClientId kFirst{1};
constexpr ClientId kSecond{2};

/// Half of a bubble may be filled, less 1 ms for the switch.
FillConstants half() { return {.fraction = 0.5, .switch_cost = 1ms}; }

/// The host moves 1 GB in 1 ms; 10 GB of the device are left beside training's peak.
FillConstants moving() {
  FillConstants constants{.fraction = 1, .offload = Offload::kWhatDoesNotFit};
  constants.host_link = BytesPerSecond{1e12};
  constants.beside_training = gb(10);
  return constants;
}

FillPlan plan(const FillConstants& constants, Bytes first = {}, Bytes second = {}) {
  return FillPlan(constants, {Bytes{}, first, second});
}

TEST(FillPlan, CutsAtTheUsablePartOfEachBubble) {
  FillPlan cut = plan(half());
  EXPECT_FALSE(cut.take(kFirst, 1ms, 0ms));  // no bubble
  cut.begin_bubble(20ms, {}, 100ms);         // to 100 + 10 - 1
  EXPECT_TRUE(cut.take(kFirst, 4ms, 100ms));
  EXPECT_TRUE(cut.take(kFirst, 5ms, 100ms));  // ends at 109
  EXPECT_FALSE(cut.take(kFirst, 1ns, 100ms));
  cut.end_bubble();
  EXPECT_FALSE(cut.take(kFirst, 0ms, 101ms));
  cut.begin_bubble(4ms, {}, 200ms);  // to 200 + 2 - 1
  EXPECT_FALSE(cut.take(kFirst, 2ms, 200ms));
  EXPECT_TRUE(cut.take(kFirst, 1ms, 200ms));
}

TEST(FillPlan, TimeThatHasPassedIsGone) {
  FillPlan late = plan(half());
  late.begin_bubble(20ms, {}, 0ms);  // to 9
  EXPECT_FALSE(late.take(kFirst, 4ms, 6ms));
  EXPECT_TRUE(late.take(kFirst, 3ms, 6ms));
}

// Bubbles of 10 and 20 ms: 4 and 9 ms are usable. 15 ms + 1 fit into no half, but into all of the
// longer one, once an iteration has shown that it is the longest.
TEST(FillPlan, WhatNoBubbleTakesRunsAloneInTheLongest) {
  FillPlan alone = plan(half());
  alone.begin_bubble(20ms, {}, 0ms);
  EXPECT_FALSE(alone.take(kFirst, 15ms, 0ms));
  EXPECT_FALSE(alone.has_place(15ms));
  alone.begin_bubble(10ms, {}, 50ms);
  alone.end_iteration();
  EXPECT_TRUE(alone.has_place(15ms));
  EXPECT_FALSE(alone.has_place(20ms));  // 20 + 1 > 20: stuck
  alone.begin_bubble(10ms, {}, 60ms);
  EXPECT_FALSE(alone.take(kFirst, 15ms, 60ms));
  alone.begin_bubble(20ms, {}, 100ms);
  EXPECT_TRUE(alone.take(kFirst, 15ms, 100ms));
  EXPECT_FALSE(alone.take(kFirst, 1ms, 100ms));  // alone
  EXPECT_EQ(alone.alone(), 1u);
  alone.begin_bubble(20ms, {}, 200ms);
  EXPECT_TRUE(alone.take(kFirst, 1ms, 200ms));
  EXPECT_FALSE(alone.take(kFirst, 15ms, 200ms));  // not the first
}

TEST(FillPlan, FillersShareTheMemoryOfABubbleInTheOrderInWhichTheyCome) {
  FillPlan tight = plan(half(), gb(6), gb(5));
  tight.begin_bubble(20ms, gb(10), 0ms);
  EXPECT_TRUE(tight.take(kSecond, 1ms, 0ms));
  EXPECT_FALSE(tight.take(kFirst, 1ms, 0ms));  // 11 > 10
  tight.begin_bubble(20ms, gb(10), 100ms);     // a bubble begins empty
  EXPECT_TRUE(tight.take(kFirst, 1ms, 100ms));
  EXPECT_FALSE(tight.take(kSecond, 1ms, 100ms));
  EXPECT_FALSE(tight.lacks_memory(kFirst));
}

TEST(FillPlan, AFillerThatNoBubbleHasMemoryForIsKnown) {
  FillPlan large = plan(half(), gb(11));
  large.begin_bubble(20ms, gb(10), 0ms);
  EXPECT_FALSE(large.take(kFirst, 1ms, 0ms));
  EXPECT_TRUE(large.lacks_memory(kFirst));
  large.begin_bubble(20ms, {}, 50ms);  // not known: it may
  EXPECT_TRUE(large.take(kFirst, 1ms, 50ms));
  EXPECT_FALSE(large.lacks_memory(kFirst));
}

// 12 GB, 10 of them beside training: 2 GB move in (2 ms) and out (2 ms). Of a bubble of 20 ms with
// 15 GB free, 16 are left, from 2 to 18.
TEST(FillPlan, WhatDoesNotFitBesideTrainingIsMovedInAndOut) {
  FillPlan moves = plan(moving(), gb(12));
  moves.begin_bubble(20ms, gb(15), 0ms);
  EXPECT_FALSE(moves.take(kFirst, 16ms, 0ms));
  EXPECT_EQ(moves.ready(kFirst), policy::Instant{2ms});
  EXPECT_FALSE(moves.take(kFirst, 17ms, 2ms));
  EXPECT_TRUE(moves.take(kFirst, 16ms, 2ms));
  EXPECT_EQ(moves.moved(), Duration{4ms});
}

// 16 GB: 6 move in beyond the 10, and 1 GB of training makes room, as the bubble has 15 free.
TEST(FillPlan, TrainingMakesRoomForWhatTheBubbleHasNot) {
  FillPlan moves = plan(moving(), gb(16));
  moves.begin_bubble(20ms, gb(15), 0ms);
  EXPECT_FALSE(moves.take(kFirst, 6ms, 0ms));
  EXPECT_EQ(moves.ready(kFirst), policy::Instant{7ms});
  EXPECT_TRUE(moves.take(kFirst, 6ms, 7ms));  // 7 + 6 + 7 = 20
  moves.begin_bubble(20ms, gb(15), 100ms);
  EXPECT_FALSE(moves.take(kFirst, 7ms, 100ms));  // not worth a move: nothing is planned
  EXPECT_EQ(moves.ready(kFirst), std::nullopt);
}

TEST(FillPlan, NothingIsMovedOverALinkThatNobodyKnows) {
  FillConstants constants = moving();
  constants.host_link = {};
  FillPlan blind = plan(constants, gb(12), gb(10));
  blind.begin_bubble(20ms, gb(15), 0ms);
  EXPECT_FALSE(blind.take(kFirst, 1ms, 0ms));
  EXPECT_TRUE(blind.take(kSecond, 1ms, 0ms));
}

}  // namespace
}  // namespace bubblesim::policies
