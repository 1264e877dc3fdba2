// Sums of an inspection on timelines that can be added up by hand (microseconds).
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/unit/traces/inspect/small_trace.hpp"
#include "traces/inspect/bubbles.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {
namespace {

using testing::at, testing::SmallTrace, testing::us;

Duration sum(const CauseTimes& times) {
  return std::accumulate(times.begin(), times.end(), Duration{});
}

void expect_sums_agree(const WindowUse& use) {
  EXPECT_EQ(sum(use.by_cause), use.bubble());
  const Duration copies = use.by_cause[static_cast<std::size_t>(BubbleCause::kTransfer)];
  EXPECT_EQ(use.bubble() - use.idle(), use.communication - use.overlapped + copies);
  Duration in_buckets{};
  std::uint64_t bubbles = 0;
  for (const LengthBucket& bucket : use.lengths) {
    EXPECT_EQ(sum(bucket.by_cause), bucket.total);
    in_buckets += bucket.total;
    bubbles += bucket.count;
  }
  EXPECT_EQ(in_buckets, use.bubble());
  EXPECT_EQ(bubbles, use.bubbles);
}

TEST(Inspection, BusyIdleAndBubbleAreUnionsOverTheSpan) {
  SmallTrace trace;
  trace.kernel(0, 10), trace.kernel(5, 20), trace.collective(CollectiveKind::kAllReduce, 15, 50);
  trace.kernel(200, 300), trace.kernel(1300, 1400);
  const WindowUse use = inspect_rank(trace.rank()).whole;
  EXPECT_EQ(use.length, us(1400));
  EXPECT_EQ(use.busy, us(50 + 100 + 100));
  EXPECT_EQ(use.own, us(20 + 100 + 100));
  EXPECT_EQ(use.idle(), us(150 + 1000));
  EXPECT_EQ(use.bubble(), us(180 + 1000));
  EXPECT_EQ(use.communication, us(35));
  EXPECT_EQ(use.overlapped, us(5));
  EXPECT_EQ(use.bubbles, 2u);
  EXPECT_EQ(use.longest_bubble, us(1000));
  EXPECT_EQ(use.gaps, 2u);
  EXPECT_EQ(use.gaps_100us, 2u);
  EXPECT_EQ(use.gaps_1ms, 1u);
  EXPECT_EQ(use.lengths[2].count, 1u);  // 180 us
  EXPECT_EQ(use.lengths[3].count, 1u);  // 1 ms is in [1 ms, 10 ms)
  expect_sums_agree(use);
}

// Iterations 8 and 9 begin at 110, and so does the device's time; their work ends at 320.
TEST(Inspection, TheSteadyWindowIsOnePassOfTheIterationsUsed) {
  SmallTrace trace;
  trace.iteration(7, 0, 100), trace.iteration(8, 110, 200), trace.iteration(9, 210, 290);
  trace.kernel(10, 60), trace.kernel(130, 180), trace.kernel(280, 320);
  const RankInspection rank = inspect_rank(trace.rank());
  ASSERT_TRUE(rank.steady);
  EXPECT_EQ(*rank.steady_window, (Interval{at(110), at(320)}));
  EXPECT_EQ(rank.steady->busy, us(50 + 40));
  EXPECT_EQ(rank.steady->idle(), us(120));
  expect_sums_agree(*rank.steady);
}

// All of the device's work lies in the first iteration, which is no part of what repeats.
TEST(Inspection, IterationsWithoutDeviceWorkAreALoss) {
  SmallTrace trace;
  trace.iteration(7, 0, 100), trace.iteration(8, 110, 200), trace.iteration(9, 210, 290);
  trace.kernel(10, 60);
  const RankInspection rank = inspect_rank(trace.rank());
  EXPECT_FALSE(rank.steady);
  EXPECT_EQ(rank.counters.count("inspect_iterations_without_work"), 1u);
}

TEST(Inspection, IterationsRunFromMarkerToMarkerAndTheLastToItsOwnEnd) {
  SmallTrace trace;
  trace.iteration(7, 0, 100), trace.iteration(8, 110, 200), trace.iteration(9, 210, 290);
  trace.kernel(10, 60), trace.kernel(130, 180), trace.kernel(215, 280);
  const Iterations iterations = inspect_rank(trace.rank()).iterations;
  ASSERT_EQ(iterations.all.size(), 3u);
  EXPECT_TRUE(iterations.marked);
  EXPECT_EQ(iterations.all[0].span, (Interval{at(0), at(110)}));
  EXPECT_EQ(iterations.all[1].span, (Interval{at(110), at(210)}));
  EXPECT_EQ(iterations.all[2].span, (Interval{at(210), at(290)}));
  EXPECT_EQ(iterations.all[1].busy, us(50));
  EXPECT_EQ(iterations.all[0].use, IterationUse::kFirst);
  EXPECT_EQ(iterations.used, 2u);
  EXPECT_EQ(iterations.steady_mean(), us((100 + 80) / 2));
  EXPECT_EQ(iterations.shortest(), us(80));
  EXPECT_EQ(iterations.longest(), us(110));
}

TEST(Inspection, AMarkerWithoutLengthRunsToTheLastOperationsEnd) {
  SmallTrace trace;
  trace.iteration(0, 0, 0), trace.iteration(1, 100, 100), trace.kernel(10, 160);
  EXPECT_EQ(inspect_rank(trace.rank()).iterations.all[1].span, (Interval{at(100), at(160)}));
}

TEST(Inspection, WithoutMarkersTheWholeRecordingIsOneIteration) {
  SmallTrace trace;
  trace.kernel(10, 60);
  const RankInspection rank = inspect_rank(trace.rank());
  EXPECT_FALSE(rank.iterations.marked);
  ASSERT_EQ(rank.iterations.all.size(), 1u);
  EXPECT_EQ(rank.iterations.all[0].span, (Interval{at(10), at(60)}));
  EXPECT_EQ(*rank.steady_window, (Interval{at(10), at(60)}));
  EXPECT_EQ(rank.counters.count("iterations_unmarked"), 1u);
}

TEST(Inspection, MarkersOfOneThreadCountAndTheOthersAreCounted) {
  SmallTrace trace;
  trace.iteration(0, 5, 50, 2), trace.iteration(0, 0, 50, 1), trace.iteration(1, 50, 90, 1);
  trace.kernel(10, 60);
  const RankInspection rank = inspect_rank(trace.rank());
  EXPECT_EQ(rank.iterations.all.size(), 2u);
  EXPECT_EQ(rank.counters.count("iteration_markers_left_out"), 1u);
}

TEST(Inspection, SmCoverIsTheMeanShareOfSmsThatTheGridsReach) {
  SmallTrace trace;
  trace.rank().device.sm_count = 100;
  LaunchShape half;
  half.grid = {50, 1, 1};
  LaunchShape more;
  more.grid = {300, 1, 1};
  trace.kernel(0, 10).shape = trace.rank().shapes.intern(half);
  trace.kernel(5, 10).shape = trace.rank().shapes.intern(half);
  trace.kernel(20, 30).shape = trace.rank().shapes.intern(more);
  trace.kernel(30, 40);  // shape not recorded
  // 5 us at 0.5, 5 us at 1.0, 10 us idle, 10 us at 1.0, 10 us unknown: 17.5 of 40 us.
  const RankInspection rank = inspect_rank(trace.rank());
  ASSERT_TRUE(rank.whole.sm_cover());
  EXPECT_DOUBLE_EQ(*rank.whole.sm_cover(), 17.5 / 40);
  EXPECT_EQ(rank.counters.count("inspect_kernel_without_launch_shape"), 1u);
}

TEST(Inspection, SmCoverIsUnknownWithoutAnSmCount) {
  SmallTrace trace;
  trace.kernel(0, 10);
  EXPECT_FALSE(inspect_rank(trace.rank()).whole.sm_cover());
}

TEST(Inspection, TablesAreSortedByTimeAndCutAfterMerging) {
  JobTrace job;
  for (std::uint32_t number = 0; number < 2; ++number) {
    SmallTrace trace;
    trace.rank().rank = number;
    trace.op(DeviceOpKind::kKernel, "gemm", 0, 30);
    trace.op(DeviceOpKind::kKernel, "norm", 30, number == 0 ? 70 : 32);
    trace.op(DeviceOpKind::kKernel, "gemm", 80, 90);
    trace.collective(CollectiveKind::kAllReduce, 90, 95, 4096);
    DeviceOp& copy = trace.op(DeviceOpKind::kCopy, "copy", 95, 99);
    copy.direction = CopyDirection::kHostToDevice;
    copy.bytes = 1000;
    job.ranks.push_back(trace.rank());
  }
  InspectOptions options;
  options.top_kernels = 1;
  const JobInspection result = inspect_job(job, options);
  ASSERT_EQ(result.operations.kernels.size(), 1u);
  EXPECT_EQ(result.operations.kernel_names, 3u);
  EXPECT_EQ(result.operations.kernels[0].name, "gemm");  // 2 x 40 us against 40 + 2 us
  EXPECT_EQ(result.operations.kernels[0].count, 4u);
  EXPECT_EQ(result.operations.kernels[0].total, us(80));
  EXPECT_EQ(result.operations.collectives[0].bytes, 8192u);
  EXPECT_EQ(result.operations.copies[0].bytes, 2000u);
  EXPECT_EQ(result.operations.total, us(2 * (40 + 5 + 4) + 40 + 2));
  EXPECT_EQ(result.whole.length, us(2 * 99));
  EXPECT_EQ(result.ranks[1].operations.kernels.size(), 1u);
}

TEST(Inspection, MemoryHighWaterIsTheLargestSample) {
  SmallTrace trace;
  trace.rank().memory = {{at(0), 10, 50}, {at(1), 40, 60}, {at(2), 20, 60}};
  const MemoryUse memory = inspect_rank(trace.rank()).memory;
  EXPECT_EQ(memory.samples, 3u);
  EXPECT_EQ(memory.allocated_high_water_bytes, 40u);
  EXPECT_EQ(memory.reserved_high_water_bytes, 60u);
}

TEST(Inspection, ARankWithoutDeviceOperationsIsAllZeroAndCounted) {
  const RankTrace nothing;
  const RankInspection rank = inspect_rank(nothing);
  EXPECT_EQ(rank.whole.length, Duration{});
  EXPECT_TRUE(rank.iterations.all.empty());
  EXPECT_EQ(rank.counters.count("inspect_rank_without_device_operations"), 1u);
}

TEST(Inspection, CausesSumToBubbleTimeOnRandomTimelines) {
  std::mt19937 random(5);
  const auto draw = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(limit));
  };
  for (int round = 0; round < 50; ++round) {
    SmallTrace trace;
    std::int64_t host = 0;
    std::int64_t device = 0;
    for (int i = 0; i < 200; ++i) {
      const auto kind = draw(5) == 0 ? HostCallKind::kStreamSync : HostCallKind::kLaunchKernel;
      const std::int64_t from = host + draw(draw(20) == 0 ? 3000 : 20);
      const auto thread = static_cast<std::uint32_t>(draw(2));
      const auto call = trace.call(kind, from, from + draw(30), thread);
      host = from + draw(40);
      device = std::max(device + draw(9), from) + draw(30);
      if (draw(6) == 0) {
        trace.collective(draw(2) == 0 ? CollectiveKind::kRecv : CollectiveKind::kAllReduce, device,
                         device + draw(300));
      } else {
        trace.kernel(device, device + draw(60), draw(8) == 0 ? kNone : call);
      }
    }
    trace.iteration(0, 0, 50), trace.iteration(1, 300 + draw(999), host);
    const RankInspection rank = inspect_rank(trace.rank());
    expect_sums_agree(rank.whole);
    if (rank.steady) expect_sums_agree(*rank.steady);
  }
}

// Each cause of a bubble on a timeline of a few records. Times in microseconds; thresholds are
// the defaults: launch latency 10 us, turnaround 20 us, host silence 1 ms.

using enum BubbleCause;

class Bubbles : public ::testing::Test {
 protected:
  struct Segment {
    std::int64_t from, to;
    BubbleCause cause;
  };
  CounterSet expect(const std::vector<Segment>& expected, const BubbleThresholds& thresholds = {}) {
    std::vector<BubbleSegment> segments;
    for (const auto& [from, to, cause] : expected) segments.push_back({{at(from), at(to)}, cause});
    CounterSet counters;
    const DeviceUse use = device_use(trace.rank());
    EXPECT_EQ(bubble_segments(trace.rank(), use, thresholds, counters), segments);
    return counters;
  }
  SmallTrace trace;
};

TEST_F(Bubbles, KernelsWithoutAPauseLeaveNone) {
  trace.kernel(0, 10), trace.kernel(10, 20);
  expect({});
}

TEST_F(Bubbles, ACollectiveThatRunsAloneIsACollectiveWait) {
  trace.kernel(0, 10), trace.collective(CollectiveKind::kAllReduce, 5, 30), trace.kernel(30, 40);
  expect({{10, 30, kCollectiveWait}});
}

TEST_F(Bubbles, AReceiveThatRunsAloneIsAPeerWait) {
  trace.kernel(0, 10), trace.collective(CollectiveKind::kRecv, 10, 30), trace.kernel(30, 40);
  expect({{10, 30, kPeerWait}});
}

TEST_F(Bubbles, ACollectiveBesideAReceiveTakesTheirCommonTime) {
  trace.collective(CollectiveKind::kSendRecv, 0, 30);
  trace.collective(CollectiveKind::kAllGather, 10, 20);
  expect({{0, 10, kPeerWait}, {10, 20, kCollectiveWait}, {20, 30, kPeerWait}});
}

TEST_F(Bubbles, CopiesAndMemsetsThatRunAloneAreTransfers) {
  trace.kernel(0, 10), trace.op(DeviceOpKind::kCopy, "copy", 5, 30);
  trace.op(DeviceOpKind::kMemset, "memset", 30, 32);
  trace.collective(CollectiveKind::kRecv, 25, 28), trace.kernel(32, 40);
  expect({{10, 25, kTransfer}, {25, 28, kPeerWait}, {28, 32, kTransfer}});
}

TEST_F(Bubbles, AnOperationThatWasLaunchedLateByABusyHostIsLaunchBound) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kOther, 4, 90);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 95, 100);
  trace.kernel(8, 20, first);
  trace.kernel(106, 120, second);  // 20..100 not launched, 100..106 launch latency
  expect({{20, 106, kLaunchBound}});
}

TEST_F(Bubbles, WhatFollowsABlockedHostWithinTheGapIsSynchronisationToo) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kStreamSync, 5, 30);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 95, 100);
  trace.kernel(8, 20, first), trace.kernel(106, 120, second);
  // 20..30 blocked, 30..100 the host refills the queue, 100..106 launch latency.
  expect({{20, 100, kSynchronisation}, {100, 106, kLaunchBound}});
}

TEST_F(Bubbles, AHostWithoutCallsForLongIsSilent) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kStreamSync, 5, 30);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 1030, 1034);
  trace.kernel(8, 20, first), trace.kernel(1040, 1050, second);
  expect({{20, 30, kSynchronisation}, {30, 1030, kHostSilent}, {1030, 1034, kSynchronisation},
          {1034, 1040, kLaunchBound}});
}

TEST_F(Bubbles, AWatchdogThatPollsDoesNotHideSilence) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kEventQuery, 300, 310, 2);
  trace.call(HostCallKind::kEventQuery, 600, 610);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 1100, 1104);
  trace.kernel(8, 20, first), trace.kernel(1104, 1150, second);
  expect({{20, 1100, kHostSilent}, {1100, 1104, kLaunchBound}});
}

TEST_F(Bubbles, ACopyCallThatWaitsForItsOwnCopyBlocksTheHost) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  const auto copy = trace.call(HostCallKind::kCopy, 40, 80);
  trace.kernel(8, 20, first), trace.op(DeviceOpKind::kCopy, "copy", 60, 75, copy);
  // 20..40 short pause before the blocking call, 40..60 inside it.
  expect({{20, 60, kSynchronisation}, {60, 75, kTransfer}});
}

TEST_F(Bubbles, ABlockedThreadBesideABusyOneIsNotSynchronisation) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kDeviceSync, 5, 200), trace.call(HostCallKind::kOther, 15, 96, 1);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 96, 100, 1);
  trace.kernel(8, 20, first), trace.kernel(100, 120, second);
  expect({{20, 100, kLaunchBound}});
}

TEST_F(Bubbles, APauseBetweenQueuedKernelsIsTurnaroundWhileShort) {
  const auto a = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  const auto b = trace.call(HostCallKind::kLaunchKernel, 4, 8);
  const auto c = trace.call(HostCallKind::kLaunchKernel, 8, 12);
  trace.kernel(8, 50, a), trace.kernel(52, 60, b), trace.kernel(81, 90, c);
  expect({{50, 52, kTurnaround}, {60, 81, kOther}});
}

TEST_F(Bubbles, AGapWithoutARecordedLaunchIsCounted) {
  trace.kernel(0, 10), trace.kernel(30, 40);
  trace.kernel(70, 80, 7);  // no such call
  const CounterSet counters = expect({{10, 30, kTurnaround}, {40, 70, kOther}});
  EXPECT_EQ(counters.count("inspect_gap_without_launch"), 2u);
}

TEST_F(Bubbles, ThresholdsMoveTimeBetweenCauses) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 100, 104);
  trace.kernel(4, 20, first), trace.kernel(104, 120, second);
  BubbleThresholds thresholds;
  thresholds.host_silence = testing::us(50);
  expect({{20, 100, kHostSilent}, {100, 104, kLaunchBound}}, thresholds);
}

}  // namespace
}  // namespace bubblesim::traces
