// What becomes of the files that recorders leave.
#include "capture/control/collect_recordings.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "traces/format/trace_reader.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/join/join_recording.hpp"

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre, ::testing::HasSubstr;

constexpr CounterSpec kDropped{"cupti_records_dropped", Severity::kLoss, "dropped"};

// A kernel before the call that launched it, as they come from the driver.
traces::JobTrace recording(std::uint32_t rank) {
  traces::RankTrace trace;
  trace.rank = rank;
  trace.world_size = 2;
  trace.device.name = "NVIDIA H200";
  trace.provenance.format = std::string(traces::kRecordingFormat);
  const NameId kernel = trace.names.intern("gemm");
  const NameId call = trace.names.intern("cudaLaunchKernel");
  static_cast<void>(trace.shapes.intern(traces::LaunchShape{}));
  trace.threads.resize(1);
  trace.streams.resize(1);
  traces::DeviceOp op;
  op.name = kernel;
  op.correlation = 9;
  op.duration = Duration{50};
  for (const int start : {200, 100}) {
    op.start = TraceTime{Duration{start}};
    trace.device_ops.push_back(op);
    op.correlation = 8;
  }
  traces::HostCall launch;
  launch.name = call;
  launch.kind = traces::HostCallKind::kLaunchKernel;
  launch.duration = Duration{5};
  for (const std::uint64_t correlation : {8U, 9U}) {
    launch.correlation = correlation;
    launch.start = TraceTime{Duration{static_cast<std::int64_t>(10 * correlation)}};
    trace.host_calls.push_back(launch);
  }
  traces::Marker marker;
  marker.name = call;
  marker.kind = traces::MarkerKind::kIteration;
  trace.markers.assign(3, marker);
  trace.counters.add(kDropped, 4);
  return {{trace}};
}

class Collect : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "collect-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string put(const std::string& name, const traces::JobTrace& job) const {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(traces::format::write_job(path, job));
    return path;
  }
  std::string folder_;
};

// 200 to 250 is the last kernel's end, 80 the first call's start: 170 ns.
TEST_F(Collect, ARecordingBecomesASortedTimeline) {
  const std::string path = put("rank0.btr", recording(0));
  const auto read = collect_recording(path, path);
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->size(), 1U);
  const RecordingSummary& summary = read->front();
  EXPECT_EQ(summary.kernels, 2U);
  EXPECT_EQ(summary.calls, 2U);
  EXPECT_EQ(summary.iterations, 3U);
  EXPECT_EQ(summary.ranges, 0U);
  EXPECT_EQ(summary.lost, 4U);
  EXPECT_EQ(summary.span, Duration{170});
  EXPECT_EQ(summary.device, "NVIDIA H200");
  EXPECT_EQ(summary.bytes, fs::file_size(path));
  EXPECT_TRUE(summary.complete);
  const auto job = traces::format::read_job(path);
  ASSERT_TRUE(job);
  const traces::RankTrace& rank = job->job.ranks.front();
  EXPECT_EQ(rank.provenance.format, traces::kCaptureFormat);
  ASSERT_EQ(rank.device_ops.size(), 2U);
  EXPECT_LT(rank.device_ops[0].start, rank.device_ops[1].start);
  EXPECT_EQ(rank.device_ops[0].launch, 0U);
}

// No launcher's variables: rank 0 of 1. In the largest communicator, of 8, this is the fourth.
TEST_F(Collect, ARankThatOnlyNcclNamesIsTakenFromTheLargestCommunicator) {
  traces::JobTrace job = recording(0);
  traces::RankTrace& trace = job.ranks.front();
  trace.world_size = 1;
  for (const auto& [size, place] : {std::pair{2U, 2U}, std::pair{8U, 4U}, std::pair{4U, 1U}}) {
    traces::Collective record;
    record.kind = traces::CollectiveKind::kAllReduce;
    record.group = trace.names.intern("group of " + std::to_string(size));
    record.group_size = size;
    record.place = place;
    trace.collectives.push_back(record);
  }
  const std::string path = put("rank0.pid77.btr", job);
  const auto read = collect_recording(path, path);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->front().rank, 3U);
  EXPECT_EQ(read->front().world_size, 8U);
  EXPECT_EQ(read->front().path, folder_ + "/rank3.btr");
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(traces::format::read_job(folder_ + "/rank3.btr")->job.ranks.front().rank, 3U);
}

TEST_F(Collect, ACutFileIsCollectedAsFarAsItIsWholeAndSaysSo) {
  const std::string path = put("rank0.recording.btr", recording(0));
  fs::resize_file(path, fs::file_size(path) - 10);
  const auto collected = collect_in_place({path});
  ASSERT_EQ(collected.recordings.size(), 1U);
  EXPECT_FALSE(collected.recordings.front().complete);
  EXPECT_EQ(collected.recordings.front().path, folder_ + "/rank0.btr");
  EXPECT_FALSE(fs::exists(path));
  const auto again = traces::format::read_job(folder_ + "/rank0.btr");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->job.ranks.front().counters.count("btr_end_missing"), 1U);
}

TEST_F(Collect, WhatIsNoRecordingIsNamedAndLeft) {
  const std::string path = folder_ + "/rank0.btr";
  std::ofstream(path) << "not a trace";
  const auto collected = collect_in_place({path, folder_ + "/rank1.btr"});
  EXPECT_TRUE(collected.recordings.empty());
  ASSERT_EQ(collected.faults.size(), 2U);
  EXPECT_THAT(collected.faults.front().text(), HasSubstr(path));
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(Collect, AJobsFilesMoveOutOfItsFolderByRank) {
  const auto job = JobFolder::make(folder_ + "/out");
  ASSERT_TRUE(job);
  ASSERT_TRUE(traces::format::write_job(job->path() + "/rank1.btr", recording(1)));
  ASSERT_TRUE(traces::format::write_job(job->path() + "/rank0.btr", recording(0)));
  const auto collected = job->collect({});
  ASSERT_EQ(collected.recordings.size(), 2U);
  EXPECT_EQ(collected.recordings[0].path, folder_ + "/out/rank0.btr");
  EXPECT_EQ(collected.recordings[1].path, folder_ + "/out/rank1.btr");
  EXPECT_THAT(recordings_in(folder_ + "/out"),
              ElementsAre(folder_ + "/out/rank0.btr", folder_ + "/out/rank1.btr"));
  EXPECT_FALSE(fs::exists(job->path()));
}

TEST_F(Collect, NothingThatIsThereIsReplaced) {
  const auto job = JobFolder::make(folder_);
  ASSERT_TRUE(job);
  std::ofstream(folder_ + "/rank0.btr") << "old";
  ASSERT_TRUE(traces::format::write_job(job->path() + "/rank0.btr", recording(0)));
  const auto collected = job->collect({});
  ASSERT_EQ(collected.recordings.size(), 1U);
  EXPECT_THAT(collected.recordings.front().path, HasSubstr(folder_ + "/rank0."));
  EXPECT_NE(collected.recordings.front().path, folder_ + "/rank0.btr");
  EXPECT_EQ(fs::file_size(folder_ + "/rank0.btr"), 3U);
}

TEST_F(Collect, AFileInUseStaysWhereItIs) {
  const auto job = JobFolder::make(folder_);
  ASSERT_TRUE(job);
  const std::string path = job->path() + "/rank0.recording.btr";
  ASSERT_TRUE(traces::format::write_job(path, recording(0)));
  EXPECT_TRUE(job->collect({path}).recordings.empty());
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(Collect, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ + "/file") << "";
  const auto job = JobFolder::make(folder_ + "/file/out");
  ASSERT_FALSE(job);
  EXPECT_THAT(job.error().text(), HasSubstr(folder_ + "/file/out"));
}

}  // namespace
}  // namespace bubblesim::capture
