#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "traces/export/job_export.hpp"

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

TEST(JobToChrome, EmptyJobIsAnEmptyTrace) { EXPECT_TRUE(job_to_chrome(JobTrace{}).slices.empty()); }

JobTrace one_collective() {
  RankTrace rank;
  rank.rank = 3;
  rank.threads = {{4711, "python"}};
  rank.streams = {{7, 0, 1}};
  HostCall call;
  call.start = TraceTime{Duration{1'700'000'000'000'000'001}};
  call.duration = Duration{50};
  call.name = rank.names.intern("cudaLaunchKernel");
  call.kind = HostCallKind::kLaunchKernel;
  call.correlation = 9;
  rank.host_calls = {call};
  DeviceOp op;
  op.start = call.start + Duration{100};
  op.duration = Duration{1};
  op.name = rank.names.intern("gemm<2, \"x\">");
  op.shape = rank.shapes.intern(LaunchShape{{4, 5, 6}, {32, 2, 1}, 40, 1024});
  op.correlation = 9;
  op.launch = 0;
  op.kind = DeviceOpKind::kCollective;
  op.collective = 0;
  rank.device_ops = {op};
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.bytes = 4096;
  collective.group = rank.names.intern("dp");
  collective.group_size = 8;
  rank.collectives = {collective};
  return {{rank}};
}

std::vector<std::string> lines_of(const JobTrace& job) {
  std::ostringstream out;
  write_job_csv(out, job);
  std::istringstream in(out.str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(JobToCsv, ACallAndAnOperationAreARowEach) {
  const auto lines = lines_of(one_collective());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1],
            "3,host_call,0,launch_kernel,cudaLaunchKernel,1700000000000000001,50,4711,,,9,"
            ",,,,,,,,,,,,,,,");
  EXPECT_EQ(lines[2],
            "3,device_op,0,collective,\"gemm<2, \"\"x\"\">\",1700000000000000101,1,,7,1,9,0,"
            "4,5,6,32,2,1,40,1024,4096,,all_reduce,dp,8,0,");
}

TEST(JobToCsv, RowsHaveAsManyCellsAsTheHeader) {
  JobTrace job = one_collective();
  job.ranks[0].device_ops[0].name = job.ranks[0].names.intern("plain");
  for (const std::string& line : lines_of(job)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 26) << line;
  }
}

TEST(JobToCsv, AFileThatCannotBeWrittenIsAFault) {
  EXPECT_FALSE(write_job_csv_file("no/such/folder/job.csv", one_collective()));
}

}  // namespace
}  // namespace bubblesim::traces
