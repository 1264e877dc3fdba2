#include <gmock/gmock.h>

#include "capture/replay/job_runner.hpp"
#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::capture {
namespace {

using Us = std::chrono::microseconds;
using namespace testing;
using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;
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
  JobPlan plan = one_thread(1, {launch(Us(0), Us(1), 0)});
  add_kernel(plan, 0, Us(10));
  Stage stage;
  stage.faults.job_stall = measure::FakeJobStall{plan.client, Us(5)};
  const ReplayEnd end = stage.run(plan);
  ASSERT_TRUE(end.fault);
  EXPECT_THAT(end.fault->message, HasSubstr("does not answer: 1 operations of job"));
  EXPECT_THAT(in_us(end.record.iterations), ElementsAre(1));
}

TEST(JobRunner, WhatTheDeviceCannotHoldIsAFaultOfPreparing) {
  JobPlan plan = one_thread(1, {});
  plan.memory = Bytes{2ULL << 30};
  Stage stage;
  const ReplayEnd end = stage.run(plan);
  ASSERT_TRUE(end.fault);
  EXPECT_THAT(end.fault->message, HasSubstr("job needs 2GiB of device memory"));
}

/// A service whose pass is one kernel of 10 us.
JobPlan service(const ServeMode& mode) {
  JobPlan plan = empty_plan(1);
  add_kernel(plan, 0, Us(10));
  plan.program.threads.push_back({"main", {launch(Us(0), Us(0), 0)}});
  plan.loop.reset();
  plan.serve = mode;
  plan.client = ClientId{1};
  return plan;
}

ServeMode online(std::vector<Duration> arrivals, std::uint32_t max_batch, Duration max_wait) {
  ServeMode mode;
  mode.online = true;
  mode.arrivals = std::move(arrivals);
  mode.batching.max_batch = max_batch;
  mode.batching.max_wait = max_wait;
  return mode;
}

TEST(JobService, OfflineThereIsAlwaysANextBatch) {
  ServeMode mode;
  mode.batching.max_batch = 4;
  mode.batching.requests_per_pass = 2;
  mode.batching.batch_cost = 0.5;
  Stage stage;
  stage.gate();
  const ReplayEnd end = stage.run(service(mode), Us(50));
  // Four requests are two passes' worth: 10 * (1 + 1 * 0.5) = 15 each.
  EXPECT_THAT(in_us(end.record.passes), ElementsAre(15, 30, 45));
  EXPECT_THAT(end.record.pass_requests, ElementsAre(4U, 4U, 4U));
  EXPECT_THAT(end.record.requests, IsEmpty());
  EXPECT_THAT(end.record.unfinished, IsEmpty());
  EXPECT_THAT(stage.gate().heard, ElementsAre("15 iteration of 15", "30 iteration of 15",
                                              "45 iteration of 15"));
  EXPECT_EQ(stage.iterations_told, 3U);
}

TEST(JobService, OnlineABatchStartsWhenItIsFullOrRipeAndTheProgramIdle) {
  Stage stage;
  const ReplayEnd end = stage.run(service(online({Us(0), Us(1), Us(2), Us(30)}, 2, Us(5))));
  // {0, 1} is full at 1; {2} is ripe at 7 and the program free at 21; {30} is ripe at 35.
  ASSERT_EQ(end.record.requests.size(), 4U);
  std::vector<std::int64_t> starts, ends;
  for (const RequestRecord& request : end.record.requests) {
    starts.push_back(in_us(request.start));
    ends.push_back(in_us(request.end));
  }
  EXPECT_THAT(starts, ElementsAre(1, 1, 21, 35));
  EXPECT_THAT(ends, ElementsAre(21, 21, 31, 45));  // a batch of two takes twice as long
}

TEST(JobService, AStopLeavesWhatHasArrivedUnfinished) {
  Stage stage;
  const ReplayEnd end = stage.run(service(online({Us(0), Us(3), Us(4), Us(90)}, 1, Us(0))), Us(15));
  EXPECT_EQ(end.record.requests.size(), 1U);
  EXPECT_THAT(in_us(end.record.unfinished), ElementsAre(3, 4));  // one of them under way
}

TEST(JobService, APassHasEndedWhenAllThreadsAndTheDeviceHave) {
  JobPlan plan = service(online({Us(0), Us(1)}, 1, Us(0)));
  add_kernel(plan, 0, Us(3));
  plan.program.threads.push_back({"second", {pause(Us(20)), launch(Us(0), Us(2), 1)}});
  Stage stage;
  // The second thread returns at 22, its kernel ends at 23; then the same again.
  EXPECT_THAT(in_us(stage.run(plan).record.passes), ElementsAre(23, 46));
}

TEST(RequestQueue, TakesAtMostABatchOfWhatHasArrived) {
  const ServeMode mode = online({Us(0), Us(0), Us(0), Us(9)}, 2, Us(5));
  RequestQueue queue(mode);
  EXPECT_EQ(queue.next_start(Us(0)), Us(0));
  EXPECT_EQ(queue.take(Us(0)), 2U);
  queue.served();
  EXPECT_EQ(queue.next_start(Us(1)), Us(5));   // the third is ripe
  EXPECT_EQ(queue.next_start(Us(20)), Us(20));
  EXPECT_EQ(queue.take(Us(5)), 1U);
  EXPECT_THAT(in_us(queue.unfinished(Us(8))), ElementsAre(0));
  queue.served();
  EXPECT_EQ(queue.next_start(Us(6)), Us(14));
  EXPECT_EQ(queue.take(Us(14)), 1U);
  EXPECT_EQ(queue.next_start(Us(20)), std::nullopt);
}

constexpr Duration kLong = std::chrono::seconds(4);

JobPlan plan_of(std::vector<std::vector<program::Step>> threads,
                std::vector<Duration> kernels = {}) {
  JobPlan plan = empty_plan(2);
  plan.record_operations = true;
  for (const Duration solo : kernels) add_kernel(plan, 0, solo);
  for (std::vector<program::Step>& steps : threads)
    plan.program.threads.push_back({"", std::move(steps)});
  plan.loop = LoopMode{0};
  return plan;
}

/// When a job that is stopped at 5 us has ended.
std::int64_t ends_at(const JobPlan& plan) {
  Stage stage;
  const ReplayEnd end = stage.run(plan, Us(5));
  EXPECT_FALSE(end.fault);
  return in_us(end.record.ended);
}

TEST(JobStop, EndsThinking) { EXPECT_EQ(ends_at(plan_of({{pause(kLong)}})), 5); }

TEST(JobStop, EndsTheWaitForAHandOver) {
  JobPlan plan = plan_of({{pause(kLong)}, {pause(Us(1))}});
  detail(plan, 1, 0, {{}, 0, 0});
  EXPECT_EQ(ends_at(plan), 5);
}

TEST(JobStop, EndsTheWaitForTheStart) {
  JobPlan plan = plan_of({{pause(Us(1))}});
  plan.program.start_offset = kLong;
  EXPECT_EQ(ends_at(plan), 5);
}

TEST(JobStop, EndsTheWaitForAnOperationThatNobodyHasLaunched) {
  EXPECT_EQ(ends_at(plan_of({{step(kWaitOp, 0)}, {launch(kLong, Us(0), 0)}}, {Us(1)})), 5);
}

TEST(JobStop, EndsTheWaitForRoomInTheWindow) {
  const JobPlan plan = plan_of({{launch(Us(0), Us(0), 0), launch(Us(0), Us(0), 1)}},
                               {Us(100), Us(100)});
  Stage stage;
  stage.gate().window_size = 1;
  const ReplayEnd end = stage.run(plan, Us(5));
  EXPECT_EQ(in_us(end.record.ended), 5);  // before the device is closed
  EXPECT_THAT(timeline(end.record), ElementsAre("0: called 0, runs 0 to 100, returned 0"));
}

TEST(JobStop, WaitsForWhatWasLaunched) {
  EXPECT_EQ(ends_at(plan_of({{launch(Us(0), Us(0), 0), step(kWaitDevice), pause(kLong)}},
                            {Us(30)})),
            30);
}

TEST(JobStop, NothingWaitsForAnOperationThatIsNeverLaunched) {
  JobPlan plan = plan_of({{launch(Us(0), Us(0), 1), step(kWaitStream, 1)},
                          {launch(kLong, Us(0), 0)}},
                         {Us(1)});
  add_kernel(plan, 1, Us(10));
  add_edge(plan, 0);
  EXPECT_EQ(ends_at(plan), 5);
}

TEST(JobStop, AHeldLaunchIsNotLaunchedAfterItsRelease) {
  const JobPlan plan = plan_of({{launch(Us(0), Us(0), 0)}}, {Us(10)});
  Stage stage;
  stage.gate().held_until[1] = Us(8);
  const ReplayEnd end = stage.run(plan, Us(5));
  EXPECT_EQ(in_us(end.record.ended), 8);
  EXPECT_EQ(end.record.launches, 0U);
  EXPECT_THAT(end.record.operations, IsEmpty());
  EXPECT_EQ(in_us(end.record.held_time), 8);
}

TEST(JobStop, EndsTheWaitForRequests) {
  JobPlan plan = plan_of({{pause(Us(1))}, {pause(Us(1))}});
  plan.loop.reset();
  plan.serve = ServeMode{};
  plan.serve->online = true;
  plan.serve->arrivals = {kLong};
  EXPECT_EQ(ends_at(plan), 5);
}

TEST(JobStop, BeforeTheStartNothingIsDone) {
  Stage stage;
  const ReplayEnd end = stage.run(plan_of({{launch(Us(0), Us(0), 0)}}, {Us(10)}), -Us(1));
  EXPECT_EQ(end.record.launches, 0U);
  EXPECT_EQ(in_us(end.record.ended), 0);
}

}  // namespace
}  // namespace bubblesim::capture
