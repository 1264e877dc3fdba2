#include <gmock/gmock.h>

#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::capture {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using Us = std::chrono::microseconds;
using enum program::StepKind;

/// Three kernels of 10 us in one stream, launched without think time; then the end.
JobPlan three_kernels() {
  JobPlan plan = empty_plan(1);
  plan.record_operations = true;
  plan.program.threads.push_back({"main", {}});
  for (std::uint32_t i = 0; i < 3; ++i) {
    add_kernel(plan, 0, Us(10));
    plan.program.threads[0].steps.push_back(launch(Us(0), Us(1), i));
  }
  plan.program.threads[0].steps.push_back(step(kWaitDevice));
  plan.program.threads[0].steps.push_back(step(kEnd));
  return plan;
}

TEST(JobGate, AHeldLaunchGoesOnWhenItIsReleased) {
  Stage stage;
  stage.gate().held_until[2] = Us(7);
  const ReplayEnd end = stage.run(three_kernels());
  EXPECT_THAT(timeline(end.record), ElementsAre("0: called 0, runs 0 to 10, returned 1",
                                                "1: called 7, runs 10 to 20, returned 8",
                                                "2: called 8, runs 20 to 30, returned 9"));
  EXPECT_EQ(in_us(end.record.held_time), 6);
  EXPECT_EQ(end.record.gate_time, Duration{});
  EXPECT_EQ(end.record.gate.launches, 3U);
}

TEST(JobGate, AWindowBoundsWhatIsOnTheDevice) {
  Stage stage;
  stage.gate().window_size = 1;
  const ReplayEnd end = stage.run(three_kernels());
  EXPECT_THAT(timeline(end.record), ElementsAre("0: called 0, runs 0 to 10, returned 1",
                                                "1: called 10, runs 10 to 20, returned 11",
                                                "2: called 20, runs 20 to 30, returned 21"));
}

TEST(JobGate, CompletionsAreReportedIfThePlanSaysSo) {
  JobPlan plan = three_kernels();
  Stage quiet;
  quiet.gate();
  EXPECT_FALSE(quiet.run(plan).fault);
  EXPECT_THAT(quiet.gate().heard, ElementsAre("30 iteration of 30"));
  plan.report_completions = true;
  Stage told;
  told.gate();
  EXPECT_FALSE(told.run(plan).fault);
  EXPECT_THAT(told.gate().heard, ElementsAre("10 completed 1", "20 completed 2", "30 completed 3",
                                             "30 iteration of 30"));
}

TEST(JobGate, ABubbleLastsFromItsOperationToTheNextThatIsNoCollective) {
  JobPlan plan = empty_plan(2);
  plan.program.threads.push_back({"main", {launch(Us(0), Us(0), 0), launch(Us(0), Us(0), 1),
                                   launch(Us(25), Us(0), 2), step(kWaitDevice), step(kEnd)}});
  add_kernel(plan, 0, Us(10));
  add_kernel(plan, 1, Us(30));  // a collective, from 10 on
  plan.program.ops.back().kind = program::WorkKind::kCollective;
  add_edge(plan, 0);
  add_kernel(plan, 0, Us(5));   // at 25
  plan.bubbles.push_back({0, {Us(14), Bytes{}, false}});
  plan.bubbles.push_back({1, {Us(99), Bytes{}, false}});  // a collective begins none
  Stage stage;
  stage.gate();
  EXPECT_FALSE(stage.run(plan).fault);
  EXPECT_THAT(stage.gate().heard,
              ElementsAre("10 bubble of 14", "25 bubble ends", "40 iteration of 40"));
}

TEST(JobGate, ALaunchIsDescribedAsTheSimulatorDoes) {
  JobPlan plan = empty_plan(1);
  plan.client = ClientId{3};
  plan.forms = {{{{4, 3, 2}, {33, 1, 1}, 16, 0}, program::KernelClass::kMemory},
                {{{10, 1, 1}, {8, 8, 2}, 16, 0}, program::KernelClass::kCompute}};
  plan.program.names.intern("second");
  add_kernel(plan, 0, Us(2));
  add_kernel(plan, 0, Us(3));
  plan.program.ops.back().profile = 1;
  plan.program.ops.back().name = NameId{1};
  Stage stage;
  const policy::LaunchInfo info = LaunchPath::describe(plan, stage.device(), 0, 2);
  EXPECT_EQ(info.client, ClientId{3});
  EXPECT_EQ(info.operations, 2U);
  EXPECT_EQ(info.blocks, 24U + 10U);
  EXPECT_EQ(info.threads_per_block, 128U);  // 33 threads are two warps, 64
  EXPECT_EQ(info.sm_blocks, 100U);          // the device's, of the first
  EXPECT_EQ(info.kernel, 0U);
  EXPECT_EQ(info.profiled, Us(5));
  EXPECT_EQ(info.bound, program::KernelClass::kMemory);
  EXPECT_EQ(LaunchPath::describe(plan, stage.device(), 1, 1).kernel, (1ULL << 32U) + 1);
}

TEST(JobGate, ACopyHasNoBlocks) {
  JobPlan plan = empty_plan(1);
  add_kernel(plan, 0, Us(2));
  plan.program.ops[0].kind = program::WorkKind::kCopy;
  plan.program.ops[0].profile = 0;  // of the plan's copies
  Stage stage;
  const policy::LaunchInfo info = LaunchPath::describe(plan, stage.device(), 0, 1);
  EXPECT_EQ(info.kind, program::WorkKind::kCopy);
  EXPECT_EQ(info.blocks, 0U);
  EXPECT_EQ(info.sm_blocks, 0U);
}

}  // namespace
}  // namespace bubblesim::capture
