// Times, bubbles by kind and what is published of single schedules.
#include <gtest/gtest.h>

#include "tests/unit/sim/pipeline/plans.hpp"

namespace bubblesim::pipeline {
namespace {

// Two ranks, two micro-batches, F = 1, B = 2:
//   rank 0  F0 F1 .  B0-- B1--      rank 1 runs F0 B0 F1 B1 as 1F1B:
//   rank 1  .  F0 B0-- F1 B1-- .
TEST(Execute, PlacesActionsByHand) {
  const PlannedSchedule plan = made("1f1b", request(2, 2));
  EXPECT_EQ(text_of(plan.schedule.actions[0]), "0F0 0F1 0B0 0B1");
  EXPECT_EQ(text_of(plan.schedule.actions[1]), "1F0 1B0 1F1 1B1");
  const Execution run = ran(plan, times(1, 1, 1));
  EXPECT_EQ(run.spans[0], (std::vector<Span>{{0, 1}, {1, 2}, {4, 6}, {7, 9}}));
  EXPECT_EQ(run.spans[1], (std::vector<Span>{{1, 2}, {2, 4}, {4, 5}, {5, 7}}));
  EXPECT_EQ(run.bubbles, (std::vector<ScheduleBubble>{{0, 2, 2, BubbleKind::kBetween},
                                              {0, 6, 1, BubbleKind::kGap},
                                              {1, 0, 1, BubbleKind::kFillDrain},
                                              {1, 7, 2, BubbleKind::kFillDrain}}));
  EXPECT_EQ(run.makespan, 9);
  EXPECT_EQ(run.longest_rank, 0U);
}

// A transfer delays what comes from another rank, and nothing within one: 1 + 1 + 1 + 2 + 1 + 2.
TEST(Execute, TransfersDelayOtherRanksOnly) {
  const Execution run = ran(made("gpipe", request(2, 1)), times(1, 1, 1, 1));
  EXPECT_EQ(run.spans[1], (std::vector<Span>{{2, 3}, {3, 5}}));
  EXPECT_EQ(run.makespan, 8);
  // zb-v with one rank: both stages on it, so nothing is sent.
  EXPECT_EQ(ran(made("zb-v", request(1, 2)), times(1, 1, 1, 50)).makespan, 12);
}

TEST(Execute, StagesMayDifferAndBackwardAndPairsMayCostLess) {
  UnitTimes unit = times(1, 1, 1);
  unit.by_stage = {{1, 1, 1}, {3, 2, 4}};
  EXPECT_EQ(ran(made("gpipe", request(2, 1)), unit).makespan, 1 + 3 + 6 + 2);
  unit.backward = 1;
  EXPECT_EQ(ran(made("gpipe", request(2, 1)), unit).makespan, 1 + 3 + 1 + 1);
  const PlannedSchedule dual = made("dualpipev", request(2, 4));
  UnitTimes apart = times(2, 2, 2);
  UnitTimes together = apart;
  together.overlapped = 4;  // in place of 2 + 4
  EXPECT_LT(ran(dual, together).makespan, ran(dual, apart).makespan);
}

// With B = 2F all of GPipe's idle time is in one piece between phases or across iterations, of
// 1F1B's (F + 2B) / 2(F + B) = 5/6; 0.883 at p = 16, m = 8, 0.942 at m = 4.
TEST(Execute, ContiguousPartOfTheBubble) {
  const UnitTimes unit = times(1, 1, 1);
  for (const std::uint32_t p : {4U, 16U, 32U}) {
    EXPECT_DOUBLE_EQ(ran(made("gpipe", request(p, 2 * p)), unit).contiguous_fraction(), 1);
    EXPECT_NEAR(ran(made("1f1b", request(p, 2 * p)), unit).contiguous_fraction(), 5.0 / 6, 1e-12);
  }
  EXPECT_NEAR(ran(made("1f1b", request(16, 8)), unit).contiguous_fraction(), 0.883, 0.0006);
  EXPECT_NEAR(ran(made("1f1b", request(16, 4)), unit).contiguous_fraction(), 0.942, 0.0006);
}

// PyTorch's recorded table for 4 ranks and 10 micro-batches: idle 6 a rank, at most 9 held.
TEST(Execute, DualPipeVOnFourRanks) {
  UnitTimes unit = times(1, 1, 1);
  unit.overlapped = 3;
  const Execution run = ran(made("dualpipev", request(4, 10)), unit);
  EXPECT_EQ(run.idle, (std::vector<std::int64_t>{6, 6, 6, 6}));
  EXPECT_EQ(run.peak_activations, (std::vector<std::int64_t>{9, 9, 9, 9}));
}

// At p = 16, m = 64, 16, 8 an iteration takes m + 15 slots: PipeFill's 82, 34 and 26 days are
// these and 3 slots for what does not depend on m.
TEST(Execute, DepthSixteenHasTheLengthsOfPipeFill) {
  const UnitTimes unit = times(1, 1, 1);
  for (const auto& [m, days] : {std::pair{64U, 82}, std::pair{16U, 34}, std::pair{8U, 26}}) {
    for (const char* name : {"gpipe", "1f1b"}) {
      EXPECT_EQ(ran(made(name, request(16, m)), unit).makespan / 3 + 3, days);
    }
  }
}

TEST(Execute, AnEmptyRankIdlesThroughout) {
  Schedule schedule{"half", 2, 1, 1, {0}, {{forward(0, 0), backward(0, 0)}, {}}};
  const Execution run = execute(schedule, chain_graph(1, 1), times(1, 1, 1));
  EXPECT_EQ(run.idle, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(run.bubbles, (std::vector<ScheduleBubble>{{1, 0, 3, BubbleKind::kFillDrain}}));
  EXPECT_DOUBLE_EQ(run.makespan_bubble_fraction(), 0.5);
}

}  // namespace
}  // namespace bubblesim::pipeline
