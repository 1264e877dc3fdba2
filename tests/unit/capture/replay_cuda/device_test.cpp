// What runs on the device: durations, order, waits, copies, priorities, SMs of one's own.
#include "tests/unit/capture/replay_cuda/cuda_bench.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;

TEST_F(CudaBench, AStandInLastsWhatThePlanSays) {
  const auto op = kernel(100us);
  ASSERT_TRUE(open());
  launch(op);
  ASSERT_TRUE(close());
  EXPECT_NEAR(double(listener_.of(op).lasted()), 100'000, 2'000);
  EXPECT_EQ(listener_.starts, 1);
}

TEST_F(CudaBench, AFactorScalesTheDurationAndNotTheLoops) {
  const auto op = kernel(100us);
  ASSERT_TRUE(open());
  launch(op, 1, 0, 2.5);
  launch(op, 1, 1, 0.1);
  ASSERT_TRUE(close());
  EXPECT_NEAR(double(listener_.of(op, 0).lasted()), 250'000, 5'000);
  EXPECT_NEAR(double(listener_.of(op, 1).lasted()), 10'000, 1'000);
}

TEST_F(CudaBench, ACollectiveLastsItsTimeWithoutAnyFit) {
  const auto op = kernel(123us);
  plan_.program.ops[op].kind = program::WorkKind::kCollective;
  ASSERT_TRUE(open());
  EXPECT_EQ(fake_driver::calls("cuLaunchKernel"), 64U);  // pings of the clock, nothing else
  launch(op);
  ASSERT_TRUE(close());
  EXPECT_EQ(listener_.of(op).lasted(), 123'000);
}

TEST_F(CudaBench, StreamsRunSideBySideAndEdgesHoldAcrossThem) {
  const auto first = kernel(100us, 0);
  const auto beside = kernel(100us, 1);
  const auto after = kernel(50us, 2, {first, beside});
  // The watcher moves the clock while this thread waits for a core, so not at each try.
  bool side_by_side = false;
  for (std::uint64_t pass = 0; pass < 6 && !side_by_side; ++pass) {
    ASSERT_TRUE(open());
    for (const auto op : {first, beside, after}) launch(op, 1, pass);
    ASSERT_TRUE(close());
    side_by_side = listener_.of(beside, pass).start < listener_.of(first, pass).end;
    EXPECT_GE(listener_.of(after, pass).start, listener_.of(first, pass).end);
    EXPECT_GE(listener_.of(after, pass).start, listener_.of(beside, pass).end);
  }
  EXPECT_TRUE(side_by_side);
}

TEST_F(CudaBench, AnEdgeMeansTheSamePassHoweverFarThreadsAreApart) {
  const auto before = kernel(10us, 0);
  const auto after = kernel(10us, 1, {before});
  ASSERT_TRUE(open());
  for (std::uint64_t pass = 0; pass < 8; ++pass) launch(before, 1, pass);
  for (std::uint64_t pass = 0; pass < 8; ++pass) launch(after, 1, pass);
  ASSERT_TRUE(close());
  for (std::uint64_t pass = 0; pass < 8; ++pass)
    EXPECT_GE(listener_.of(after, pass).start, listener_.of(before, pass).end);
}

TEST_F(CudaBench, AnEdgeFromWhatNobodyLaunchesIsGivenUpAndCounted) {
  const auto never = kernel(10us, 0);
  const auto after = kernel(10us, 1, {never});
  ASSERT_TRUE(open());
  launch(after);
  ASSERT_TRUE(close());
  EXPECT_EQ(counted("cuda_edges_given_up"), 1U);
  EXPECT_EQ(listener_.told().size(), 1U);
}

TEST_F(CudaBench, WaitsReturnWhenWhatTheyNameHasEnded) {
  const auto quick = kernel(10us, 0);
  const auto slow = kernel(400us, 1);
  device_ = open_cuda_device(0, clock_, options_).value();
  ASSERT_TRUE(prepare(*device_, nullptr));
  launch(slow);
  launch(quick);
  launch(quick, 1, 1);
  EXPECT_EQ(device_->in_flight(), 3U);
  device_->wait_op(quick, 0);
  EXPECT_EQ(device_->in_flight(), 2U);
  device_->wait_stream(0);
  EXPECT_EQ(device_->in_flight(), 1U);
  device_->wait_all();
  EXPECT_EQ(device_->in_flight(), 0U);
}

TEST_F(CudaBench, AListenerIsToldWithoutAnybodyWaiting) {
  const auto op = kernel(10us);
  ASSERT_TRUE(open());
  launch(op);
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (listener_.told().empty() && std::chrono::steady_clock::now() < until) {
  }
  EXPECT_EQ(listener_.told().size(), 1U);
}

TEST_F(CudaBench, MoreExecutionsThanRecordsWaitAndAreAllTold) {
  const auto op = kernel(10us);
  device_ = open_cuda_device(0, clock_, options_).value();
  ASSERT_TRUE(prepare(*device_, nullptr));
  for (std::uint64_t pass = 0; pass < 40; ++pass) launch(op, 1, pass);
  device_->wait_op(op, 39);
  EXPECT_EQ(device_->in_flight(), 0U);
  EXPECT_GE(counted("cuda_launches_waited_for_records"), 1U);
}

TEST_F(CudaBench, CopiesMoveTheirBytesOnTheirPathInChunks) {
  const auto in = copy(3'000'000, CopyPath::kHostToDevice, 0);
  const auto out = copy(100'000'000, CopyPath::kDeviceToHost, 1);
  const auto before = kernel(50ms, 1);  // both chunks are launched before it ends
  plan_.record_operations = true;
  ASSERT_TRUE(open());
  launch(in);
  launch(before);
  launch(out);
  ASSERT_TRUE(close());
  // 1,000 bytes a nanosecond, and the stamp that says the end.
  EXPECT_EQ(listener_.of(in).lasted(), 3'000 + 1'000);
  EXPECT_EQ(listener_.of(out).lasted(), 67'108 + 32'891 + 1'000);
  EXPECT_EQ(fake_driver::calls("cuMemcpyHtoDAsync_v2"), 1U);
  EXPECT_EQ(fake_driver::calls("cuMemcpyDtoHAsync_v2"), 2U);  // 64 MiB, and the rest
}

TEST_F(CudaBench, CopiesWhoseTimesNobodyRecordsNeedNoKernels) {
  // 3 us, from the launch at the earliest; the end is told when it is seen.
  const auto in = copy(3'000'000, CopyPath::kHostToDevice);
  const auto after = kernel(10us);
  ASSERT_TRUE(open());
  for (std::uint64_t pass = 0; pass < 20; ++pass) {
    launch(in, 1, pass);
    launch(after, 1, pass);
  }
  ASSERT_TRUE(close());
  for (const fake_driver::Execution& done : fake_driver::executions())
    EXPECT_FALSE(done.name.ends_with("_copy")) << "a stamp: " << done.name;
  EXPECT_EQ(fake_driver::calls("cuEventRecord"), 20U);
  EXPECT_GE(listener_.of(in).lasted(), 3'000);
  EXPECT_GE(listener_.of(after).start, listener_.of(in).start + Duration{3'000});
}

TEST_F(CudaBench, ACopyWithoutBytesMovesAsManyAsTakeItsTime) {
  const auto op = copy(0, CopyPath::kDeviceToDevice);
  plan_.record_operations = true;
  ASSERT_TRUE(open());
  launch(op);
  ASSERT_TRUE(close());
  EXPECT_NEAR(double(listener_.of(op).lasted()), 100'000, 8'000);
}

TEST_F(CudaBench, PrioritiesCountUpwardsAndEndAtTheDriversRange) {
  plan_.priority = 2;
  kernel(10us);
  ASSERT_TRUE(open());
  EXPECT_EQ(fake_driver::streams().back().priority, -2);
  EXPECT_EQ(counted("cuda_stream_priority_clamped"), 0U);
  ASSERT_TRUE(close());
  plan_.priority = 9;
  ASSERT_TRUE(open());
  EXPECT_EQ(fake_driver::streams().back().priority, -5);
  EXPECT_EQ(counted("cuda_stream_priority_clamped"), 1U);
}

TEST_F(CudaBench, JobsOfOneProcessGetDifferentSms) {
  options_.hang_limit = std::chrono::hours(1);  // the first device moves the clock while it idles
  plan_.sms = 60;
  const auto op = kernel(10us);
  ASSERT_TRUE(open());
  EXPECT_EQ(fake_driver::streams().back().sms, 64U);
  EXPECT_EQ(counted("cuda_green_context_sms_rounded"), 4U);
  EXPECT_EQ(device_->resident_blocks(op), 8U * 64U);  // 2,048 threads an SM, 256 a block
  auto second = open_cuda_device(0, clock_, options_).value();
  ASSERT_TRUE(prepare(*second, nullptr));
  EXPECT_EQ(fake_driver::streams().back().first_sm, 64U);
  EXPECT_EQ(second->counters().count("cuda_green_contexts_overlap"), 0U);
  auto third = open_cuda_device(0, clock_, options_).value();
  ASSERT_TRUE(prepare(*third, nullptr));
  EXPECT_EQ(third->counters().count("cuda_green_contexts_overlap"), 1U);
  launch(op);
  ASSERT_TRUE(close());
  EXPECT_NEAR(double(listener_.of(op).lasted()), 10'000, 200);
}

TEST_F(CudaBench, TimesAreOnTheHostsClock) {
  fake_driver::set_clock_offset(77'000'000'000);
  const auto op = kernel(100us);
  ASSERT_TRUE(open());
  expect_times_of_the_host(op);
  EXPECT_EQ(counted("cuda_globaltimer_tick_ns"), 32U);
}

TEST_F(CudaBench, AClockThatMovedDuringTheRunIsCounted) {
  kernel(100us);
  ASSERT_TRUE(open());
  fake_driver::set_clock_offset(500'000);
  ASSERT_TRUE(close());
  EXPECT_NEAR(double(counted("cuda_clock_drift_ns")), 500'000, 10'000);
  EXPECT_EQ(counted("cuda_clock_drift_large"), 1U);
}

}  // namespace
}  // namespace bubblesim::capture
