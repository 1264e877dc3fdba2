#include "traces/export/job_export.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace bubblesim::traces {
namespace {

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
