// Schedules by name: orders by hand, and plans that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/pipeline/check.hpp"
#include "tests/unit/sim/pipeline/plans.hpp"

namespace bubblesim::pipeline {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Registry, AnUnknownNameIsRefusedWithTheNearest) {
  EXPECT_THAT(refusal("1f1", request(4, 8)),
              AllOf(HasSubstr("unknown schedule \"1f1\""), HasSubstr("did you mean \"1f1b\"?"),
                    HasSubstr("chimera")));
}

TEST(Registry, InterleavedNeedsAMultipleOfTheRanks) {
  EXPECT_THAT(refusal("interleaved", request(4, 10)),
              AllOf(HasSubstr("found 10 micro-batches on 4 ranks"),
                    HasSubstr("nearest: 8 or 12 micro-batches, or the same in groups of 5")));
  EXPECT_THAT(refusal("interleaved", request(4, 3)), HasSubstr("nearest: 4 micro-batches"));
  ScheduleRequest small = request(4, 12);
  small.group = 3;
  EXPECT_THAT(refusal("interleaved", small), HasSubstr("nearest: 4"));
}

// 13 on 4 ranks: in groups of 5 the last has 3, in groups of 6 it has 1, of 7 it has 6.
TEST(Registry, InterleavedTakesAnyCountInTheGroupThatTheRefusalNames) {
  EXPECT_THAT(refusal("interleaved", request(4, 13)), HasSubstr("in groups of 7"));
  for (std::uint32_t m = 5; m <= 40; ++m) {
    if (m % 4 == 0) continue;
    const std::string text = refusal("interleaved", request(4, m));
    ScheduleRequest plan = request(4, m);
    plan.group = static_cast<std::uint32_t>(std::stoul(text.substr(text.rfind(' ') + 1)));
    EXPECT_TRUE(make_schedule("interleaved", plan)) << m << " in " << plan.group;
  }
}

TEST(Registry, DualPipeNeedsEvenNumbersAndTwoMicroBatchesARank) {
  EXPECT_THAT(refusal("dualpipe", request(3, 12)), HasSubstr("nearest: 2 or 4"));
  EXPECT_THAT(refusal("dualpipe", request(4, 6)), HasSubstr("nearest: 8"));
  EXPECT_THAT(refusal("dualpipe", request(4, 11)), HasSubstr("nearest: 10 or 12"));
  EXPECT_THAT(refusal("dualpipev", request(4, 7)), HasSubstr("nearest: 8"));
  EXPECT_THAT(refusal("chimera", request(3, 8)), HasSubstr("nearest: 2 or 4"));
  EXPECT_THAT(refusal("chimera", request(4, 5)), HasSubstr("nearest: 4 or 6"));
}

TEST(Registry, OptionsThatAScheduleHasNotAreRefused) {
  EXPECT_THAT(refusal("gpipe", request(4, 8, 2)),
              HasSubstr("nearest: 1 chunks, or interleaved with 2"));
  ScheduleRequest grouped = request(4, 8);
  grouped.group = 4;
  EXPECT_THAT(refusal("1f1b", grouped), HasSubstr("interleaved"));
  ScheduleRequest with_graph = request(4, 8);
  with_graph.graph = chain_graph(4, 8);
  EXPECT_THAT(refusal("1f1b", with_graph), HasSubstr("\"graph\""));
}

TEST(Registry, TablesWithoutEndAreRefused) {
  EXPECT_THAT(refusal("1f1b", request(0, 8)), HasSubstr("nearest: 1"));
  EXPECT_THAT(refusal("1f1b", request(4, 0)), HasSubstr("nearest: 1"));
  EXPECT_THAT(refusal("1f1b", request(4'000'000'000U, 8)), HasSubstr("nearest: 16384"));
  EXPECT_THAT(refusal("1f1b", request(1000, 1'000'000)), HasSubstr("nearest: 5333"));
  EXPECT_THAT(refusal("interleaved", request(16384, 16384, 16384)), HasSubstr("actions"));
}

TEST(Registry, EverySmallPlanThatIsMadeIsSound) {
  for (const ScheduleSpec& spec : schedule_specs()) {
    int count = 0;
    for (std::uint32_t p = 1; p <= 9; ++p) {
      for (std::uint32_t m = 1; m <= 2 * p + 3; ++m) {
        const auto plan = make_schedule(spec.name, request(p, m));
        if (!plan) {
          EXPECT_THAT(plan.error().text(), HasSubstr("nearest")) << spec.name << p << " " << m;
          continue;
        }
        EXPECT_THAT(check(plan->schedule, plan->graph), IsEmpty());
        EXPECT_EQ(plan->schedule.name, spec.name);
        ++count;
      }
    }
    EXPECT_GE(count, 8) << spec.name;
  }
}

// Megatron's figure for p = 2, v = 2, m = 4: rank 0 holds stages 0 and 2.
TEST(Registry, InterleavedByHand) {
  const Schedule schedule = made("interleaved", request(2, 4)).schedule;
  EXPECT_EQ(schedule.rank_of_stage, (std::vector<std::uint32_t>{0, 1, 0, 1}));
  EXPECT_EQ(text_of(schedule.actions[0]),
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  EXPECT_EQ(text_of(schedule.actions[1]),
            "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
}

TEST(Registry, ZeroBubbleH1ByHand) {
  const Schedule schedule = made("zb-h1", request(2, 3)).schedule;
  EXPECT_EQ(text_of(schedule.actions[0]), "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2");
  EXPECT_EQ(text_of(schedule.actions[1]), "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2");
}

// Chimera's figure for 4 stages and 4 micro-batches: 0 and 1 go down, 2 and 3 go up.
TEST(Registry, ChimeraByHand) {
  const PlannedSchedule plan = made("chimera", request(4, 4));
  EXPECT_EQ(text_of(plan.schedule.actions[0]), "0F0 0F1 7F2 7B2 7F3 7B3 0B0 0B1");
  EXPECT_EQ(text_of(plan.schedule.actions[1]), "1F0 6F2 1F1 6F3 6B2 1B0 6B3 1B1");
  EXPECT_EQ(ran(plan, times(2, 1, 1)).makespan, 2 * 10);
}

}  // namespace
}  // namespace bubblesim::pipeline
