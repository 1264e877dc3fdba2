#include "traces/export/job_export.hpp"

#include <gtest/gtest.h>

namespace bubblesim::traces {
namespace {

/// One launch of one kernel, inside an iteration, at a clock far from zero.
JobTrace one_launch() {
  const TraceTime start{Duration{1'700'000'000'000'000'000}};
  RankTrace rank;
  rank.rank = 3;
  rank.device.name = "H100";
  rank.threads = {{4711, "python"}};
  rank.streams = {{7, 0}};
  HostCall call;
  call.start = start + Duration{100};
  call.duration = Duration{50};
  call.name = rank.names.intern("cudaLaunchKernel");
  rank.host_calls = {call};
  DeviceOp op;
  op.start = start + Duration{200};
  op.duration = Duration{1000};
  op.name = rank.names.intern("gemm");
  op.launch = 0;
  rank.device_ops = {op};
  Marker marker;
  marker.start = start;
  marker.duration = Duration{2000};
  marker.name = rank.names.intern("iteration 0");
  marker.kind = MarkerKind::kIteration;
  rank.markers = {marker};
  rank.memory = {{start + Duration{300}, 10, 20}};
  return {{rank, rank}};
}

TEST(JobToChrome, TimesCountFromTheFirstRecord) {
  const JobTrace job = one_launch();
  const ChromeTrace trace = job_to_chrome(job);
  EXPECT_EQ(trace.notes[0].second, "1700000000000000000");
  ASSERT_EQ(trace.slices.size(), 6U);  // two ranks of a call, a marker, a kernel
  EXPECT_EQ(trace.slices[0].start_ns, 100);
  EXPECT_EQ(trace.slices[1].name, "iteration 0");
  EXPECT_EQ(trace.slices[1].start_ns, 0);
  EXPECT_EQ(trace.slices[2].duration_ns, 1000);
}

TEST(JobToChrome, EveryThreadAndStreamHasATrack) {
  const JobTrace job = one_launch();
  const ChromeTrace trace = job_to_chrome(job);
  EXPECT_EQ(trace.processes[0], "rank 3, H100");
  ASSERT_EQ(trace.tracks.size(), 4U);
  EXPECT_EQ(trace.tracks[0].name, "python, thread 4711");
  EXPECT_EQ(trace.tracks[1].name, "stream 7");
  EXPECT_EQ(trace.slices[5].track, 3U);  // the second rank's kernel
  EXPECT_EQ(trace.counters[1].name, "reserved_bytes");
  EXPECT_EQ(trace.counters[1].samples[0].value, 20);
}

TEST(JobToChrome, LaunchAndKernelShareAFlowOfTheirRank) {
  const JobTrace job = one_launch();
  const ChromeTrace trace = job_to_chrome(job);
  EXPECT_EQ(trace.slices[0].flow, trace.slices[2].flow);
  EXPECT_EQ(trace.slices[3].flow, trace.slices[5].flow);
  EXPECT_NE(trace.slices[0].flow, trace.slices[3].flow);
  EXPECT_EQ(trace.slices[1].flow, kNoFlow);
}

TEST(JobToChrome, StallsAreSlicesOfTheirThread) {
  JobTrace job = one_launch();
  const TraceTime start = job.ranks[0].host_calls[0].start;
  job.ranks[0].stalls = {{start + Duration{10}, Duration{20}, ThreadId{0}, StallKind::kQueueFull}};
  const ChromeTrace trace = job_to_chrome(job);
  ASSERT_EQ(trace.slices.size(), 7U);
  EXPECT_EQ(trace.slices[1].name, "launch queue full");
  EXPECT_EQ(trace.slices[1].category, "stall");
  EXPECT_EQ(trace.slices[1].track, 0U);
  EXPECT_EQ(trace.slices[1].start_ns, 110);
  EXPECT_EQ(trace.slices[1].duration_ns, 20);
}

TEST(JobToChrome, EmptyJobIsAnEmptyTrace) {
  EXPECT_TRUE(job_to_chrome(JobTrace{}).slices.empty());
}

}  // namespace
}  // namespace bubblesim::traces
