// Getting ready: stand-ins measured and counted, memory held, fits kept.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "capture/replay/cuda/device_context.hpp"
#include "capture/replay/cuda/record_ring.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/replay_cuda/cuda_bench.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using namespace cuda;

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
  const auto opened = error_of(open());
  EXPECT_THAT(opened.text(), ::testing::HasSubstr("Fake H100 cannot hold the rest of"));
  EXPECT_THAT(opened.text(), ::testing::HasSubstr("cuMemAlloc_v2: out of memory (2)"));
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

// Launch calls of several operations.
TEST_F(CudaBench, SeveralOperationsOfOneCallAreOneGraphLaunch) {
  const auto first = kernel(50us, 0);
  kernel(30us, 0);
  graph(first, 2);
  ASSERT_TRUE(open());
  const auto before = fake_driver::calls("cuLaunchKernel");
  for (std::uint64_t pass = 0; pass < 3; ++pass) launch(first, 2, pass);
  device_->wait_all();
  EXPECT_EQ(fake_driver::calls("cuGraphLaunch"), 3U);
  EXPECT_EQ(fake_driver::calls("cuLaunchKernel"), before);
  ASSERT_TRUE(close());
  for (std::uint64_t pass = 0; pass < 3; ++pass) {
    EXPECT_NEAR(double(listener_.of(0, pass).lasted()), 50'000, 1'000);
    EXPECT_NEAR(double(listener_.of(1, pass).lasted()), 30'000, 600);
    EXPECT_GE(listener_.of(1, pass).start, listener_.of(0, pass).end);
    if (pass == 0) continue;
    EXPECT_GE(listener_.of(0, pass).start, listener_.of(1, pass - 1).end);
  }
}

TEST_F(CudaBench, AGraphKeepsTheEdgesAndStreamsOfItsOperations) {
  const auto a = kernel(50us, 0);
  const auto b = kernel(50us, 1);
  const auto c = kernel(10us, 1, {a});
  const auto d = kernel(10us, 2, {c});
  graph(a, 4);
  ASSERT_TRUE(open());
  launch(a, 4);
  ASSERT_TRUE(close());
  EXPECT_LT(listener_.of(b).start, listener_.of(a).end);
  EXPECT_GE(listener_.of(c).start, listener_.of(a).end);
  EXPECT_GE(listener_.of(c).start, listener_.of(b).end);
  EXPECT_GE(listener_.of(d).start, listener_.of(c).end);
}

TEST_F(CudaBench, WhatComesBeforeAndAfterAGraphIsKeptInOrder) {
  const auto before = kernel(80us, 2);
  const auto a = kernel(20us, 0, {before});
  const auto b = kernel(20us, 1);
  const auto after = kernel(10us, 1);
  const auto beside = kernel(10us, 2, {b});
  graph(a, 2);
  ASSERT_TRUE(open());
  launch(before);
  launch(a, 2);
  launch(after);
  launch(beside);
  ASSERT_TRUE(close());
  EXPECT_GE(listener_.of(a).start, listener_.of(before).end);
  EXPECT_GE(listener_.of(after).start, listener_.of(b).end);
  EXPECT_GE(listener_.of(beside).start, listener_.of(b).end);
}

TEST_F(CudaBench, AFactorReachesAGraphAndTheNextLaunchHasItsOwn) {
  const auto a = kernel(50us, 0);
  kernel(50us, 0);
  graph(a, 2);
  ASSERT_TRUE(open());
  launch(a, 2, 0, 1);
  launch(a, 2, 1, 3);
  launch(a, 2, 2, 1);
  ASSERT_TRUE(close());
  EXPECT_NEAR(double(listener_.of(a, 0).lasted()), 50'000, 1'000);
  EXPECT_NEAR(double(listener_.of(a, 1).lasted()), 150'000, 3'000);
  EXPECT_NEAR(double(listener_.of(a, 2).lasted()), 50'000, 1'000);
  EXPECT_EQ(fake_driver::calls("cuMemsetD32Async"), 3U);  // at first, and the two changes
}

TEST_F(CudaBench, CopiesWithinAGraphAreRecordedToo) {
  const auto a = kernel(50us, 0);
  const auto b = copy(2'000'000, CopyPath::kHostToDevice, 0);
  graph(a, 2);
  ASSERT_TRUE(open());
  launch(a, 2);
  ASSERT_TRUE(close());
  EXPECT_EQ(listener_.of(b).lasted(), 2'000 + 1'000);
  EXPECT_GE(listener_.of(b).start, listener_.of(a).end);
}

TEST_F(CudaBench, AnUnknownRangeIsLaunchedOneByOne) {
  const auto a = kernel(50us, 0);
  kernel(50us, 0);
  ASSERT_TRUE(open());
  launch(a, 2);
  ASSERT_TRUE(close());
  EXPECT_EQ(fake_driver::calls("cuGraphLaunch"), 0U);
  EXPECT_EQ(listener_.told().size(), 2U);
}

// Records that the device writes, and when the host may read them.
TEST_F(CudaBench, AnExecutionHasEndedOnceItsStartIsThereToo) {
  auto context = must(DeviceContext::open(options_.library, 0));
  auto ring = must(RecordRing::make(context->driver(), 1));
  auto* slot = reinterpret_cast<RecordSlot*>(ring->slots(0));
  slot->end_ns = 200;
  slot->ended = 1;
  EXPECT_FALSE(ring->ended(0, 1));  // nothing orders the device's two stores
  slot->start_ns = 100;
  slot->started = 1;
  EXPECT_TRUE(ring->ended(0, 1));
  EXPECT_EQ(ring->end_ns(0, 1) - ring->start_ns(0, 1), 100U);
}

TEST(RecordSlot, ATimeAndItsNumberAreOneAlignedStore) {
  EXPECT_EQ(offsetof(RecordSlot, started), offsetof(RecordSlot, start_ns) + 8);
  EXPECT_EQ(offsetof(RecordSlot, ended), offsetof(RecordSlot, end_ns) + 8);
  EXPECT_EQ(offsetof(RecordSlot, start_ns) % 16, 0U);
  EXPECT_EQ(offsetof(RecordSlot, end_ns) % 16, 0U);
  EXPECT_EQ(sizeof(RecordSlot) * kSlots % 16, 0U);  // each operation's slots begin aligned
}

}  // namespace
}  // namespace bubblesim::capture
