#include <gmock/gmock.h>

#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::capture {
namespace {

using namespace testing;
using ::testing::ElementsAre, ::testing::IsEmpty;
using Us = std::chrono::microseconds;
using enum program::StepKind;

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
  const JobPlan plan = plan_of({{launch(Us(0), Us(0), 0)}}, {Us(10)});
  JobRunner runner(plan, {&stage.clock(), &stage.device(), nullptr, {}, {}});
  ASSERT_TRUE(runner.prepare({}));
  runner.request_stop();
  const ReplayEnd end = runner.run(stage.clock().now());
  EXPECT_EQ(end.record.launches, 0U);
  EXPECT_EQ(in_us(end.record.ended), 0);
}

}  // namespace
}  // namespace bubblesim::capture
