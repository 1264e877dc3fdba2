// From axes to runs: orders, conditions and faults, counted by hand.
#include <gmock/gmock.h>

#include "sim/base/json.hpp"
#include "sim/sweep/remaining.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/sim/store/sample_record.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::AllOf, testing::ElementsAre, testing::HasSubstr, testing::SizeIs;

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
  const auto plan = must(plan_of(folder, R"([{"pointer": "/duration", "values": ["1s", "2s"]},
                                             {"pointer": "/warmup", "values": ["0s", "1ms"]}])",
                                 R"(, "repetitions": 2, "first_seed": 10)"));
  EXPECT_EQ(plan.points, 4U);
  ASSERT_EQ(plan.runs.size(), 8U);
  EXPECT_EQ(settings_of(plan)[0], "/duration = \"1s\", /warmup = \"0s\"");
  EXPECT_EQ(settings_of(plan)[2], "/duration = \"1s\", /warmup = \"1ms\"");
  EXPECT_EQ(settings_of(plan)[4], "/duration = \"2s\", /warmup = \"0s\"");
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(plan.runs[i].index, i);
    EXPECT_EQ(plan.runs[i].repetition, i % 2);
    EXPECT_EQ(plan.runs[i].seed, 10 + i % 2);
    EXPECT_EQ(plan.runs[i].point, plan.runs[i / 2 * 2].point);
    EXPECT_EQ(plan.runs[i].key.size(), 32U);
    EXPECT_EQ(plan.runs[i].point.size(), 16U);
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
  const auto plan = must(plan_of(folder, R"([
      {"pointer": "/policies/1", "values": ["mps", "time_slicing"]},
      {"pointer": "/policies/mps/parameters/filler_percentage", "values": [30, 60],
       "when": {"/policies/1/name": "mps"}}])"));
  EXPECT_THAT(settings_of(plan),
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
  const auto plan = must(plan_of(folder, R"([
      {"pointer": "/policies/1", "values": ["mps", "time_slicing"]},
      {"pointer": "/seed", "values": [3, 4], "when": {"/policies/1/name": "mps"}}])",
                            "", {"/policies/1=time_slicing"}));
  EXPECT_THAT(plan.runs, SizeIs(1));
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
  const auto plan = must(plan_of(folder, "[]"));
  ASSERT_THAT(plan.runs, SizeIs(1));
  EXPECT_THAT(plan.runs[0].settings, SizeIs(0));
  // Paths are absolute, so that a run may be done anywhere.
  EXPECT_THAT(plan.runs[0].config, HasSubstr(folder.path("kernels.csv")));
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
  const auto plan = must(plan_of(folder, R"([{"pointer": "/seed", "values": [5, 9]}])"));
  EXPECT_EQ(plan.runs[1].seed, 9U);
  EXPECT_EQ(plan.runs[0].point, plan.runs[1].point);
  EXPECT_EQ(plan.runs[1].repetition, 1U);
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

// What is left of a plan where the store has runs of another sweep.

// The best result so far, and what is said where none is good enough.

store::PlannedRun run_of(std::uint64_t index) {
  store::PlannedRun run;
  run.index = index;
  return run;
}

observe::ResultRow row_of(double requests_per_s, double kept) {
  observe::ResultRow row;
  for (const observe::ResultColumn& column : observe::result_columns()) {
    row.cells.emplace_back();
    if (column.name == "filler_requests_per_s") row.cells.back() = requests_per_s;
    if (column.name == "training_normalised_fraction") row.cells.back() = kept;
  }
  return row;
}

TEST(BestSoFar, IsTheMostOfThoseThatKeepTrainingAndOfEqualsTheFirst) {
  BestSoFar best({});  // most requests a second, 0.95 of training kept
  best.look_at(run_of(3), row_of(100, 0.96));
  best.look_at(run_of(1), row_of(100, 0.99));
  best.look_at(run_of(2), row_of(500, 0.94));
  ASSERT_TRUE(best.best());
  EXPECT_EQ(best.best()->value, 100);
  EXPECT_EQ(best.best()->index, 1U);
}

TEST(BestSoFar, IsNoOracle) {
  BestSoFar best({});
  observe::ResultRow oracle = row_of(900, 1);
  std::size_t column = 0;
  while (observe::result_columns()[column].name != "oracle") ++column;
  oracle.cells[column] = std::int64_t{1};
  best.look_at(run_of(0), oracle);
  best.look_at(run_of(1), row_of(100, 1));
  EXPECT_EQ(best.best()->index, 1U);
}

TEST(BestSoFar, NamesTheClosestWhereNoneKeepsEnough) {
  BestSoFar best({});
  best.look_at(run_of(0), row_of(300, 0.92));
  best.look_at(run_of(1), row_of(200, 0.94));
  EXPECT_FALSE(best.best());
  ASSERT_TRUE(best.closest());
  EXPECT_EQ(best.closest()->value, 0.94);
  EXPECT_EQ(best.closest()->index, 1U);
}

TEST(BestSoFar, TheLeastOfAColumnHasAPrefix) {
  const auto goal = must(parse_best_goal("min:latency_p95_ms"));
  EXPECT_EQ(goal.better, Better::kLess);
  EXPECT_EQ(goal.column, "latency_p95_ms");
  EXPECT_FALSE(parse_best_goal("latency_p96_ms"));
}

class Remaining : public testing::Test {
 protected:
  Remaining() {
    // "load" did 0 and 1, and 2 failed; "other" plans 1, 2, 3.
    const std::vector<store::RunRecord> there{store::sample_record(0), store::sample_record(1),
                                              store::failed_record(2, "bad")};
    EXPECT_TRUE(store_->add(there));
    for (std::uint64_t number = 1; number <= 3; ++number) {
      plan_.push_back(store::sample_record(number).run);
      plan_.back().index = number - 1;
    }
  }
  [[nodiscard]] RemainingRuns left(FailedRuns failed) {
    BestSoFar best{BestGoal{}};
    return must(remaining_runs(plan_, "other", *store_, failed, best));
  }

  const TempFolder temp_;
  const std::unique_ptr<store::ResultsStore> store_ =
      must(store::open_store(temp_.path("results.db"), store::StoreAccess::kWrite));
  std::vector<store::PlannedRun> plan_;
};

TEST_F(Remaining, WhatAnotherSweepDidIsNotDoneAgain) {
  const RemainingRuns before = left(FailedRuns::kKeep);
  EXPECT_EQ(before.done, 1U);
  EXPECT_EQ(before.failed, 1U);
  ASSERT_EQ(before.runs.size(), 1U);
  EXPECT_EQ(before.runs[0].key, store::sample_key(3));
  EXPECT_EQ(before.timed, 0U) << "nothing is known as the sweep's own yet";
  ASSERT_TRUE(store_->join("other", plan_));
  const RemainingRuns after = left(FailedRuns::kKeep);
  EXPECT_EQ(after.runs.size(), 1U);
  EXPECT_EQ(after.timed, 1U);
  EXPECT_EQ(after.cpu, std::chrono::milliseconds(250));
}

TEST_F(Remaining, WhatFailedUnderAnotherSweepIsTriedAgainWhenAskedFor) {
  const RemainingRuns again = left(FailedRuns::kRetry);
  EXPECT_EQ(again.done, 1U);
  EXPECT_EQ(again.failed, 0U);
  ASSERT_EQ(again.runs.size(), 2U);
  EXPECT_EQ(again.runs[0].key, store::sample_key(2));
}

}  // namespace
}  // namespace bubblesim::sweep
