// Each cause of a bubble on a timeline of a few records. Times in microseconds; thresholds are
// the defaults: launch latency 10 us, turnaround 20 us, host silence 1 ms.
#include "traces/inspect/bubbles.hpp"

#include <gtest/gtest.h>

#include "tests/unit/traces/inspect/small_trace.hpp"

namespace bubblesim::traces {
namespace {

using testing::at;
using testing::SmallTrace;

std::vector<BubbleSegment> segments_of(const RankTrace& rank) {
  CounterSet counters;
  return bubble_segments(rank, device_use(rank), BubbleThresholds{}, counters);
}

BubbleSegment segment(std::int64_t from, std::int64_t to, BubbleCause cause) {
  return {{at(from), at(to)}, cause};
}

using Segments = std::vector<BubbleSegment>;

class Bubbles : public ::testing::Test {
 protected:
  SmallTrace trace;
};

TEST_F(Bubbles, KernelsWithoutAPauseLeaveNone) {
  trace.kernel(0, 10);
  trace.kernel(10, 20);
  EXPECT_TRUE(segments_of(trace.rank()).empty());
}

TEST_F(Bubbles, ACollectiveThatRunsAloneIsACollectiveWait) {
  trace.kernel(0, 10);
  trace.collective(CollectiveKind::kAllReduce, 5, 30);
  trace.kernel(30, 40);
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(10, 30, BubbleCause::kCollectiveWait)}));
}

TEST_F(Bubbles, AReceiveThatRunsAloneIsAPeerWait) {
  trace.kernel(0, 10);
  trace.collective(CollectiveKind::kRecv, 10, 30);
  trace.kernel(30, 40);
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(10, 30, BubbleCause::kPeerWait)}));
}

TEST_F(Bubbles, ACollectiveBesideAReceiveTakesTheirCommonTime) {
  trace.collective(CollectiveKind::kSendRecv, 0, 30);
  trace.collective(CollectiveKind::kAllGather, 10, 20);
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(0, 10, BubbleCause::kPeerWait),
                                                 segment(10, 20, BubbleCause::kCollectiveWait),
                                                 segment(20, 30, BubbleCause::kPeerWait)}));
}

TEST_F(Bubbles, CopiesAndMemsetsThatRunAloneAreTransfers) {
  trace.kernel(0, 10);
  trace.op(DeviceOpKind::kCopy, "copy", 5, 30);
  trace.op(DeviceOpKind::kMemset, "memset", 30, 32);
  trace.collective(CollectiveKind::kRecv, 25, 28);
  trace.kernel(32, 40);
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(10, 25, BubbleCause::kTransfer),
                                                 segment(25, 28, BubbleCause::kPeerWait),
                                                 segment(28, 32, BubbleCause::kTransfer)}));
}

TEST_F(Bubbles, AnOperationThatWasLaunchedLateByABusyHostIsLaunchBound) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kOther, 4, 90);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 95, 100);
  trace.kernel(8, 20, first);
  trace.kernel(106, 120, second);  // 20..100 not launched, 100..106 launch latency
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(20, 106, BubbleCause::kLaunchBound)}));
}

TEST_F(Bubbles, WhatFollowsABlockedHostWithinTheGapIsSynchronisationToo) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kStreamSync, 5, 30);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 95, 100);
  trace.kernel(8, 20, first);
  trace.kernel(106, 120, second);
  // 20..30 blocked, 30..100 the host refills the queue, 100..106 launch latency.
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(20, 100, BubbleCause::kSynchronisation),
                                                 segment(100, 106, BubbleCause::kLaunchBound)}));
}

TEST_F(Bubbles, AHostWithoutCallsForLongIsSilent) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kStreamSync, 5, 30);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 1030, 1034);
  trace.kernel(8, 20, first);
  trace.kernel(1040, 1050, second);
  EXPECT_EQ(segments_of(trace.rank()),
            (Segments{segment(20, 30, BubbleCause::kSynchronisation),
                      segment(30, 1030, BubbleCause::kHostSilent),
                      segment(1030, 1034, BubbleCause::kSynchronisation),
                      segment(1034, 1040, BubbleCause::kLaunchBound)}));
}

TEST_F(Bubbles, AWatchdogThatPollsDoesNotHideSilence) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kEventQuery, 300, 310, 2);
  trace.call(HostCallKind::kEventQuery, 600, 610);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 1100, 1104);
  trace.kernel(8, 20, first);
  trace.kernel(1104, 1150, second);
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(20, 1100, BubbleCause::kHostSilent),
                                                 segment(1100, 1104, BubbleCause::kLaunchBound)}));
}

TEST_F(Bubbles, ACopyCallThatWaitsForItsOwnCopyBlocksTheHost) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  const auto copy = trace.call(HostCallKind::kCopy, 40, 80);
  trace.kernel(8, 20, first);
  trace.op(DeviceOpKind::kCopy, "copy", 60, 75, copy);
  // 20..40 short pause before the blocking call, 40..60 inside it.
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(20, 60, BubbleCause::kSynchronisation),
                                                 segment(60, 75, BubbleCause::kTransfer)}));
}

TEST_F(Bubbles, ABlockedThreadBesideABusyOneIsNotSynchronisation) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  trace.call(HostCallKind::kDeviceSync, 5, 200);
  trace.call(HostCallKind::kOther, 15, 96, 1);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 96, 100, 1);
  trace.kernel(8, 20, first);
  trace.kernel(100, 120, second);
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(20, 100, BubbleCause::kLaunchBound)}));
}

TEST_F(Bubbles, APauseBetweenQueuedKernelsIsTurnaroundWhileShort) {
  const auto a = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  const auto b = trace.call(HostCallKind::kLaunchKernel, 4, 8);
  const auto c = trace.call(HostCallKind::kLaunchKernel, 8, 12);
  trace.kernel(8, 50, a);
  trace.kernel(52, 60, b);
  trace.kernel(81, 90, c);
  EXPECT_EQ(segments_of(trace.rank()), (Segments{segment(50, 52, BubbleCause::kTurnaround),
                                                 segment(60, 81, BubbleCause::kOther)}));
}

TEST_F(Bubbles, AGapWithoutARecordedLaunchIsCounted) {
  trace.kernel(0, 10);
  trace.kernel(30, 40);
  trace.kernel(70, 80, 7);  // no such call
  CounterSet counters;
  const auto segments = bubble_segments(trace.rank(), device_use(trace.rank()), {}, counters);
  EXPECT_EQ(segments, (Segments{segment(10, 30, BubbleCause::kTurnaround),
                                segment(40, 70, BubbleCause::kOther)}));
  EXPECT_EQ(counters.count("inspect_gap_without_launch"), 2u);
}

TEST_F(Bubbles, ThresholdsMoveTimeBetweenCauses) {
  const auto first = trace.call(HostCallKind::kLaunchKernel, 0, 4);
  const auto second = trace.call(HostCallKind::kLaunchKernel, 100, 104);
  trace.kernel(4, 20, first);
  trace.kernel(104, 120, second);
  BubbleThresholds thresholds;
  thresholds.host_silence = testing::us(50);
  CounterSet counters;
  EXPECT_EQ(bubble_segments(trace.rank(), device_use(trace.rank()), thresholds, counters),
            (Segments{segment(20, 100, BubbleCause::kHostSilent),
                      segment(100, 104, BubbleCause::kLaunchBound)}));
}

}  // namespace
}  // namespace bubblesim::traces
