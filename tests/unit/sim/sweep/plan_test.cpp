// From axes to runs: orders, conditions and faults, counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string faults(const std::string& axes, const std::string& more = "") {
  const Folder folder;
  const auto plan = plan_of(folder, axes, more);
  return plan ? "" : texts(plan.error());
}

class SweepPlanTest : public ::testing::Test {
 protected:
  const Folder folder;
};

TEST_F(SweepPlanTest, TheLastAxisMovesFastestAndRepetitionsFasterStill) {
  const auto plan = plan_of(folder, R"([{"pointer": "/duration", "values": ["1s", "2s"]},
                                        {"pointer": "/warmup", "values": ["0s", "1ms"]}])",
                            R"(, "repetitions": 2, "first_seed": 10)");
  ASSERT_TRUE(plan) << texts(plan.error());
  EXPECT_EQ(plan->points, 4U);
  ASSERT_EQ(plan->runs.size(), 8U);
  EXPECT_EQ(settings_of(*plan)[0], "/duration = \"1s\", /warmup = \"0s\"");
  EXPECT_EQ(settings_of(*plan)[2], "/duration = \"1s\", /warmup = \"1ms\"");
  EXPECT_EQ(settings_of(*plan)[4], "/duration = \"2s\", /warmup = \"0s\"");
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(plan->runs[i].index, i);
    EXPECT_EQ(plan->runs[i].repetition, i % 2);
    EXPECT_EQ(plan->runs[i].seed, 10 + i % 2);
    EXPECT_EQ(plan->runs[i].point, plan->runs[i / 2 * 2].point);
    EXPECT_EQ(plan->runs[i].key.size(), 32U);
    EXPECT_EQ(plan->runs[i].point.size(), 16U);
  }
}

TEST_F(SweepPlanTest, ZippedAxesMoveTogether) {
  const auto plan = plan_of(folder, R"([{"zip": [{"pointer": "/duration", "values": ["1s", "2s"]},
                                                 {"pointer": "/seed", "values": [3, 4]}]}])");
  ASSERT_TRUE(plan) << texts(plan.error());
  EXPECT_THAT(settings_of(*plan), ElementsAre("/duration = \"1s\", /seed = 3",
                                              "/duration = \"2s\", /seed = 4"));
  EXPECT_EQ(plan->runs[1].seed, 4U);
}

TEST_F(SweepPlanTest, AnAxisWithAConditionAppliesWhereItHolds) {
  const auto plan = plan_of(folder, R"([
      {"pointer": "/policies/1", "values": ["mps", "time_slicing"]},
      {"pointer": "/policies/mps/parameters/filler_percentage", "values": [30, 60],
       "when": {"/policies/1/name": "mps"}}])");
  ASSERT_TRUE(plan) << texts(plan.error());
  EXPECT_THAT(settings_of(*plan),
              ElementsAre("/policies/1 = \"mps\", "
                          "/policies/mps/parameters/filler_percentage = 30",
                          "/policies/1 = \"mps\", "
                          "/policies/mps/parameters/filler_percentage = 60",
                          "/policies/1 = \"time_slicing\""));
}

TEST_F(SweepPlanTest, AConditionThatHoldsNowhereIsAFault) {
  const auto axes = [](const std::string& when) {
    return R"([{"pointer": "/policies/1", "values": ["mps", "time_slicing"]},
               {"pointer": "/seed", "values": [3, 4], "when": )" + when + "}]";
  };
  EXPECT_THAT(faults(axes(R"({"/policies/1/nam": "mps"})")),
              HasSubstr("/axes: the axis of \"/seed\" applies nowhere: no point has "
                        "\"/policies/1/nam\""));
  EXPECT_THAT(faults(axes(R"({"/policies/1/name": "msp"})")),
              HasSubstr("no point has \"msp\" at \"/policies/1/name\"; found there: \"mps\", "
                        "\"time_slicing\""));
  EXPECT_THAT(faults(axes(R"({"/policies/1": "mps", "/policies/1/name": "time_slicing"})")),
              HasSubstr("no point meets its whole \"when\""));
}

TEST_F(SweepPlanTest, AConditionMayHoldNowhereWhereAnOverrideFixesIt) {
  const auto plan = plan_of(folder, R"([
      {"pointer": "/policies/1", "values": ["mps", "time_slicing"]},
      {"pointer": "/seed", "values": [3, 4], "when": {"/policies/1/name": "mps"}}])",
                            "", {"/policies/1=time_slicing"});
  ASSERT_TRUE(plan) << texts(plan.error());
  EXPECT_THAT(plan->runs, SizeIs(1));
}

TEST_F(SweepPlanTest, ElementsOfListsHaveNames) {
  const auto plan = plan_of(folder, R"([{"pointer": "/fillers/batch/memory", "values": ["2GB"]}])");
  ASSERT_TRUE(plan) << texts(plan.error());
  EXPECT_EQ(Json::parse(plan->runs[0].config)["fillers"][0]["memory"], "2GB");
}

TEST_F(SweepPlanTest, PointsThatComeOutEqualAreOne) {
  const auto plan = plan_of(folder, R"([{"pointer": "/duration", "values": ["1s", "1s", "2s"]}])",
                            R"(, "repetitions": 2)");
  ASSERT_TRUE(plan) << texts(plan.error());
  EXPECT_EQ(plan->points, 3U);
  EXPECT_EQ(plan->repeated, 2U);
  EXPECT_THAT(plan->runs, SizeIs(4));
}

TEST_F(SweepPlanTest, NoAxesAreOnePoint) {
  const auto plan = plan_of(folder, "[]");
  ASSERT_TRUE(plan) << texts(plan.error());
  ASSERT_THAT(plan->runs, SizeIs(1));
  EXPECT_THAT(plan->runs[0].settings, SizeIs(0));
  // Paths are absolute, so that a run may be done anywhere.
  EXPECT_THAT(plan->runs[0].config, HasSubstr(folder.path("kernels.csv")));
}

TEST_F(SweepPlanTest, FaultsOfRunConfigsNameTheirPointsAndSettings) {
  const std::string found = faults(R"([{"pointer": "/training/jitter_cv", "values": [0, 1, -2]},
                                       {"pointer": "/policies/0", "values": ["mps", "mpss"]}])");
  EXPECT_THAT(found,
              AllOf(HasSubstr("/training/jitter_cv: found the number -2"),
                    HasSubstr("in 2 of 6 points of"), HasSubstr("point 4 (/training/jitter_cv = "
                                                                "-2, /policies/0 = \"mps\")"),
                    HasSubstr("did you mean \"mps\"?"), HasSubstr("in 3 of 6 points")));
}

TEST_F(SweepPlanTest, UnknownKeysAndFilesThatAreNotThereAreFaults) {
  EXPECT_THAT(faults(R"([{"pointer": "/fillers/0/memroy", "values": ["1GB"]}])"),
              AllOf(HasSubstr("memroy"), HasSubstr("memory")));
  EXPECT_THAT(faults(R"([{"pointer": "/device", "values": ["h100", "h101"]}])"),
              AllOf(HasSubstr("/device"), HasSubstr("did you mean \"h100\"?"),
                    HasSubstr("in point 1 (/device = \"h101\")")));
  EXPECT_THAT(faults(R"([{"pointer": "/training/trace", "values": ["nowhere"]}])"),
              AllOf(HasSubstr("/training/trace"), HasSubstr("there is no file or folder"),
                    HasSubstr("nowhere")));
}

TEST_F(SweepPlanTest, TheSeedIsAnAxisOrRepeated) {
  EXPECT_THAT(faults(R"([{"pointer": "/seed", "values": [1, 2]}])", R"(, "repetitions": 2)"),
              HasSubstr("an axis sets the seed, and so do"));
  const auto plan = plan_of(folder, R"([{"pointer": "/seed", "values": [5, 9]}])");
  ASSERT_TRUE(plan) << texts(plan.error());
  EXPECT_EQ(plan->runs[1].seed, 9U);
  EXPECT_EQ(plan->runs[0].point, plan->runs[1].point);
  EXPECT_EQ(plan->runs[1].repetition, 1U);
}

TEST_F(SweepPlanTest, MoreThanAMillionRunsAreRefusedWithoutMakingThem) {
  EXPECT_THAT(faults(R"([{"pointer": "/seed", "range": {"from": 1, "to": 1001, "step": 1}},
                         {"pointer": "/training/x",
                          "range": {"from": 1, "to": 1000, "step": 1}}])"),
              HasSubstr("found 1001000 runs; a sweep has at most a million"));
}

TEST_F(SweepPlanTest, ShardsAreEverySoManiethRun) {
  std::vector<store::PlannedRun> plan(5);
  for (std::size_t i = 0; i < plan.size(); ++i) plan[i].index = i;
  const auto shard = shard_of(plan, {1, 2});
  ASSERT_EQ(shard.size(), 2U);
  EXPECT_EQ(shard[0].index, 1U);
  EXPECT_EQ(shard[1].index, 3U);
}

}  // namespace
}  // namespace bubblesim::sweep
