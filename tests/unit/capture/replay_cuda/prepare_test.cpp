// Getting ready: stand-ins measured and counted, memory held, fits kept.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/capture/replay_cuda/cuda_bench.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;

TEST_F(CudaBench, EqualStandInsAreMeasuredOnce) {
  kernel(100us);
  ASSERT_TRUE(open());
  const auto once = fake_driver::calls("cuLaunchKernel");
  ASSERT_TRUE(close());
  for (int i = 0; i < 20; ++i) kernel(100us);
  ASSERT_TRUE(open());
  // The first device also pinged when it closed: 64.
  EXPECT_EQ(fake_driver::calls("cuLaunchKernel"), 2 * once + 64);
}

TEST_F(CudaBench, ManyDurationsOfOneFormNeedOneCheckEach) {
  for (int i = 0; i < 20; ++i) kernel(100us + i * 10us);
  ASSERT_TRUE(open());
  EXPECT_EQ(counted("stand_ins_off_target"), 0U);
  // 3 runs a check; the first form's fits take up to 4 rounds of some 8 checks.
  EXPECT_LT(fake_driver::calls("cuLaunchKernel"), 64U + 20 * 3 + 4 * 14 * 3 + 8);
}

TEST_F(CudaBench, KernelsShorterThanAnEmptyStandInAreCounted) {
  kernel(1us);
  ASSERT_TRUE(open());
  EXPECT_EQ(counted("stand_ins_at_floor"), 1U);
  EXPECT_EQ(counted("stand_ins_off_target"), 0U);
}

TEST_F(CudaBench, AStandInThatMissesItsDurationIsCountedWithItsError) {
  fake_driver::set_quantum(30'000);  // 91.2 or 121.2 us with kBesideBlocks, never 100
  kernel(100us);
  ASSERT_TRUE(open());
  const CounterSet counters = device_->counters();
  ASSERT_EQ(counters.count("stand_ins_off_target"), 1U);
  for (const auto& [name, entry] : counters) {
    if (name != "stand_ins_off_target") continue;
    EXPECT_THAT(entry.help, ::testing::AnyOf(::testing::HasSubstr("by 8.8 %"),
                                             ::testing::HasSubstr("by 21.2 %")));
  }
}

TEST_F(CudaBench, ShapesBeyondTheGpuAreCutAndCounted) {
  plan_.forms[0].shape.block = {2048, 1, 1};
  kernel(100us);
  ASSERT_TRUE(open());
  EXPECT_EQ(counted("stand_ins_clamped"), 1U);
}

TEST_F(CudaBench, KernelsWithoutAFormRunAndAreCounted) {
  plan_.program.ops[kernel(100us)].profile = program::kNoIndex;
  ASSERT_TRUE(open());
  launch(0);
  ASSERT_TRUE(close());
  EXPECT_EQ(counted("stand_ins_without_form"), 1U);
  EXPECT_NEAR(double(listener_.of(0).lasted()), 100'000, 2'000);
}

TEST_F(CudaBench, TheJobsMemoryIsHeldWithTheBuffersInIt) {
  plan_.memory = {10ULL << 30};
  kernel(100us);
  ASSERT_TRUE(open());
  EXPECT_NEAR(double(fake_driver::device_bytes_held()), double(10ULL << 30), 1e6);
  ASSERT_TRUE(close());
  EXPECT_EQ(fake_driver::things_held(), 0U);
}

TEST_F(CudaBench, AJobThatDoesNotFitIsAFaultThatSaysWhatIsFree) {
  plan_.memory = {90ULL << 30};
  kernel(100us);
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().text(), ::testing::HasSubstr("Fake H100 cannot hold the rest of"));
  EXPECT_THAT(opened.error().text(), ::testing::HasSubstr("cuMemAlloc_v2: out of memory (2)"));
  device_.reset();
  EXPECT_EQ(fake_driver::things_held(), 0U);
}

TEST_F(CudaBench, FitsAreKeptInAFileAndFoundByTheNextProcess) {
  options_.fit_cache = ::testing::TempDir() + "bubblesim-fits-" + std::to_string(::getpid());
  kernel(100us);
  ASSERT_TRUE(open());
  ASSERT_TRUE(close());
  const auto before = fake_driver::calls("cuLaunchKernel");
  ASSERT_TRUE(open());
  EXPECT_EQ(fake_driver::calls("cuLaunchKernel") - before, 64U);  // pings only
  launch(0);
  ASSERT_TRUE(close());
  EXPECT_NEAR(double(listener_.of(0).lasted()), 100'000, 2'000);
  std::filesystem::remove(options_.fit_cache);
}

TEST_F(CudaBench, AProcessWithAPartOfTheGpuMeasuresNothing) {
  options_.fit_cache = ::testing::TempDir() + "bubblesim-part-" + std::to_string(::getpid());
  kernel(100us);
  ASSERT_TRUE(open());
  ASSERT_TRUE(close());
  options_.whole_gpu = false;
  const auto before = fake_driver::calls("cuLaunchKernel");
  ASSERT_TRUE(open());
  EXPECT_EQ(fake_driver::calls("cuLaunchKernel") - before, 64U);  // pings only
  ASSERT_TRUE(close());
  kernel(200us);
  const auto opened = open();
  std::filesystem::remove(options_.fit_cache);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().text(), ::testing::HasSubstr("run its job alone first"));
}

TEST_F(CudaBench, AKernelWithAllTheSharedMemoryOfABlockHasAStandIn) {
  plan_.forms[0].shape.shared_memory_bytes = 232'448;
  kernel(100us);
  plan_.program.ops[kernel(100us)].kind = program::WorkKind::kCollective;
  ASSERT_TRUE(open());
  EXPECT_EQ(counted("stand_ins_clamped"), 0U);
}

TEST_F(CudaBench, EachExecutionStreamsOnWhereTheOneBeforeEnded) {
  plan_.forms[0].bound = program::KernelClass::kMemory;
  kernel(100us);
  kernel(100us);
  ASSERT_TRUE(open());
  launch(0);
  launch(1);
  ASSERT_TRUE(close());
  std::vector<fake_driver::Execution> all;
  for (const auto& execution : fake_driver::executions())
    if (execution.name.starts_with("mix")) all.push_back(execution);
  ASSERT_GT(all.size(), 4U);
  EXPECT_LT(all[3].first_line, all[4].first_line);  // while it is measured; first without a loop
  const auto& first = all[all.size() - 2];
  const auto& second = all.back();
  EXPECT_EQ(first.first_line, 0U);
  EXPECT_EQ(first.advance, second.advance);
  EXPECT_EQ(second.advance, 2 * second.first_line);
  // 0.8 of the 0.836 of 3.35 TB/s that can be reached, for 100 us: 224 MB; of 80 bytes, four lines
  // of 16 are read and the last is written again.
  EXPECT_NEAR(double(second.first_line), 1.12e7, 0.13e7);
}

TEST_F(CudaBench, HowMuchLongerAPassIsThanItsPlanIsSaid) {
  kernel(1us);
  kernel(1us);
  ASSERT_TRUE(open());
  // An empty stand-in's blocks take 2 us here, and CUPTI counts kBesideBlocks more.
  EXPECT_NEAR(double(counted("stand_ins_floor_excess_ns")), 2 * (1'000 + 1'190), 300);
}

TEST_F(CudaBench, WhatIsLeftWhenTheTimeForMeasuringIsOverIsMeasuredInAHurry) {
  options_.fit_budget = 1ns;
  for (int i = 0; i < 3; ++i) {
    plan_.forms.push_back(plan_.forms[0]);
    plan_.forms.back().shape.grid[0] += static_cast<std::uint32_t>(i + 1);
    plan_.program.ops[kernel(100us)].profile = static_cast<std::uint32_t>(i + 1);
  }
  ASSERT_TRUE(open());
  EXPECT_EQ(counted("stand_ins_measured_in_a_hurry"), 3U);
  EXPECT_LE(fake_driver::calls("cuLaunchKernel"), 64U + 8 + 1 + 3 * 13);
}

TEST_F(CudaBench, TheWarmUpRunsBeforeAnythingIsMeasured) {
  options_.warm_up = 5ms;
  kernel(100us);
  ASSERT_TRUE(open());
  std::int64_t worked = 0;
  for (const auto& execution : fake_driver::executions())
    worked += execution.end_ns - execution.start_ns;
  EXPECT_GE(worked, 5'000'000);
}

}  // namespace
}  // namespace bubblesim::capture
