#include "capture/replay/job_runner.hpp"

#include <gmock/gmock.h>

#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::capture {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using Us = std::chrono::microseconds;
using enum program::StepKind;

/// One thread with these steps and the end mark; operations are recorded.
JobPlan one_thread(std::uint32_t streams, std::vector<program::Step> steps) {
  JobPlan plan = empty_plan(streams);
  plan.record_operations = true;
  steps.push_back(step(kEnd));
  plan.program.threads.push_back({"main", std::move(steps)});
  return plan;
}

TEST(JobRunner, AnEdgeHoldsAnOperationOnItsStreamNotTheThread) {
  JobPlan plan = one_thread(2, {launch(Us(2), Us(1), 0), launch(Us(0), Us(1), 1),
                                step(kWaitDevice)});
  add_kernel(plan, 0, Us(10));
  add_kernel(plan, 1, Us(5));
  add_edge(plan, 0);
  Stage stage;
  const ReplayEnd end = stage.run(plan);
  EXPECT_FALSE(end.fault);
  EXPECT_THAT(timeline(end.record), ElementsAre("0: called 2, runs 2 to 12, returned 3",
                                                "1: called 3, runs 12 to 17, returned 4"));
  EXPECT_THAT(in_us(end.record.iterations), ElementsAre(17));
  EXPECT_EQ(in_us(end.record.ended), 17);
  EXPECT_EQ(end.record.launches, 2U);
  EXPECT_EQ(stage.iterations_told, 1U);
}

TEST(JobRunner, OnlyAWaitThatBlockedPaysItsReturnLag) {
  JobPlan plan = one_thread(1, {launch(Us(0), Us(1), 0), step(kWaitStream, 0),
                                step(kWaitStream, 0), pause(Us(0))});
  for (const std::uint32_t i : {1U, 2U}) {
    detail(plan, 0, i, {program::short_span(Us(3))});
    plan.program.threads[0].steps[i].cost = program::short_span(Us(2));
  }
  add_kernel(plan, 0, Us(10));
  Stage stage;
  // The first wait: from 1 until 10, and 3 of lag; the second: 2 of its own.
  EXPECT_THAT(in_us(stage.run(plan).record.iterations), ElementsAre(15));
}

TEST(JobRunner, ALaunchThatWaitsReturnsAfterItsLastOperation) {
  JobPlan plan = one_thread(1, {step(kLaunchAndWait, 0), step(kLaunchAndWait, 2)});
  detail(plan, 0, 0, {program::short_span(Us(2))});
  detail(plan, 0, 1, {program::short_span(Us(2))});
  std::vector<program::Step>& steps = plan.program.threads[0].steps;
  steps[0].count = 2;
  steps[0].cost = program::short_span(Us(1));
  steps[1].cost = program::short_span(Us(5));
  steps[1].count = 1;
  add_kernel(plan, 0, Us(10));
  add_kernel(plan, 0, Us(4));
  add_kernel(plan, 0, Us(1));
  Stage stage;
  // 10 + 4 + lag 2 = 16; then the call itself, 5, is longer than kernel and lag, 3.
  EXPECT_THAT(in_us(stage.run(plan).record.iterations), ElementsAre(21));
}

TEST(JobRunner, AThreadThinksAfterAHandOver) {
  JobPlan plan = empty_plan(0);
  plan.program.threads.push_back({"first", {pause(Us(10)), pause(Us(5))}});
  plan.program.threads.push_back({"second", {pause(Us(2)), step(kEnd)}});
  detail(plan, 1, 0, {{}, 0, 0});
  plan.program.marked_thread = 1;
  plan.loop = LoopMode{2};
  Stage stage;
  // First passes: 10 + 2 and 10 + 5; second ones: 15 + 10 + 2.
  EXPECT_THAT(in_us(stage.run(plan).record.iterations), ElementsAre(12, 27));
}

TEST(JobRunner, AnOperationOfAnotherThreadIsAwaitedBeforeItsLaunchToo) {
  JobPlan plan = empty_plan(1);
  add_kernel(plan, 0, Us(10));
  plan.program.threads.push_back({"waits", {step(kWaitOp, 0), step(kEnd)}});
  plan.program.threads.push_back({"launches", {launch(Us(7), Us(0), 0), pause(Us(100))}});
  Stage stage;
  EXPECT_THAT(in_us(stage.run(plan).record.iterations), ElementsAre(17));
}

TEST(JobRunner, PassesLoopUntilTheIterationsAreReached) {
  JobPlan plan = one_thread(0, {step(kIteration, 0), pause(Us(10)), step(kIteration, 1),
                                pause(Us(10))});
  plan.program.iterations = 2;
  plan.loop = LoopMode{3};
  plan.program.start_offset = Us(4);
  Stage stage;
  stage.gate();
  const ReplayEnd end = stage.run(plan);
  EXPECT_THAT(in_us(end.record.iterations), ElementsAre(14, 24, 34));
  EXPECT_THAT(in_us(end.record.passes), ElementsAre(24));
  EXPECT_EQ(in_us(end.record.began), 4);
  EXPECT_EQ(in_us(end.record.ended), 34);
  EXPECT_THAT(stage.gate().heard,
              ElementsAre("14 iteration of 14", "24 iteration of 10", "34 iteration of 10"));
}

TEST(JobRunner, APlanWithoutLengthLetsTheClockMove) {
  JobPlan plan = one_thread(0, {});
  plan.loop = LoopMode{3};
  Stage stage;
  const ReplayEnd end = stage.run(plan);
  EXPECT_THAT(end.record.iterations, ElementsAre(Duration{0}, Duration{1}, Duration{2}));
}

TEST(JobRunner, ADeviceFaultLeavesTheRecord) {
  JobPlan plan = one_thread(1, {launch(Us(0), Us(1), 0), step(kWaitDevice)});
  add_kernel(plan, 0, Us(10));
  Stage stage;
  stage.device().close_fault = Error{{}, {}, "the device does not answer"};
  const ReplayEnd end = stage.run(plan);
  ASSERT_TRUE(end.fault);
  EXPECT_EQ(end.fault->message, "the device does not answer");
  EXPECT_THAT(in_us(end.record.iterations), ElementsAre(10));
}

TEST(JobRunner, WhatTheDeviceCannotHoldIsAFaultOfPreparing) {
  Stage stage;
  stage.device().prepare_fault = Error{{}, {}, "no memory"};
  const ReplayEnd end = stage.run(one_thread(1, {}));
  ASSERT_TRUE(end.fault);
  EXPECT_EQ(end.fault->message, "no memory");
}

}  // namespace
}  // namespace bubblesim::capture
