// What becomes of the files that recorders leave.
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "capture/control/collect_recordings.hpp"
#include "capture/control/job_process.hpp"
#include "capture/control/process_info.hpp"
#include "capture/control/recorder_client.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/capture/control/fake_recorder.hpp"
#include "traces/format/trace_reader.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/join/join_recording.hpp"

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
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
  std::string put(const std::string& name, const traces::JobTrace& job) const {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(traces::format::write_job(path, job));
    return path;
  }
  const TempFolder temp_;
  const std::string folder_{temp_.path()};
};

// 200 to 250 is the last kernel's end, 80 the first call's start: 170 ns.
TEST_F(Collect, ARecordingBecomesASortedTimeline) {
  const std::string path = put("rank0.btr", recording(0));
  const auto read = must(collect_recording(path, path));
  ASSERT_EQ(read.size(), 1U);
  const RecordingSummary& summary = read.front();
  EXPECT_EQ(summary.kernels, 2U);
  EXPECT_EQ(summary.calls, 2U);
  EXPECT_EQ(summary.iterations, 3U);
  EXPECT_EQ(summary.ranges, 0U);
  EXPECT_EQ(summary.lost, 4U);
  EXPECT_EQ(summary.span, Duration{170});
  EXPECT_EQ(summary.device, "NVIDIA H200");
  EXPECT_EQ(summary.bytes, fs::file_size(path));
  EXPECT_TRUE(summary.complete);
  const auto job = must(traces::format::read_job(path));
  const traces::RankTrace& rank = job.job.ranks.front();
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
  const auto read = must(collect_recording(path, path));
  EXPECT_EQ(read.front().rank, 3U);
  EXPECT_EQ(read.front().world_size, 8U);
  EXPECT_EQ(read.front().path, folder_ + "/rank3.btr");
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
  const auto again = must(traces::format::read_job(folder_ + "/rank0.btr"));
  EXPECT_EQ(again.job.ranks.front().counters.count("btr_end_missing"), 1U);
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
  const auto job = must(JobFolder::make(folder_ + "/out"));
  ASSERT_TRUE(traces::format::write_job(job.path() + "/rank1.btr", recording(1)));
  ASSERT_TRUE(traces::format::write_job(job.path() + "/rank0.btr", recording(0)));
  const auto collected = job.collect({});
  ASSERT_EQ(collected.recordings.size(), 2U);
  EXPECT_EQ(collected.recordings[0].path, folder_ + "/out/rank0.btr");
  EXPECT_EQ(collected.recordings[1].path, folder_ + "/out/rank1.btr");
  EXPECT_THAT(recordings_in(folder_ + "/out"),
              ElementsAre(folder_ + "/out/rank0.btr", folder_ + "/out/rank1.btr"));
  EXPECT_FALSE(fs::exists(job.path()));
}

TEST_F(Collect, NothingThatIsThereIsReplaced) {
  const auto job = must(JobFolder::make(folder_));
  std::ofstream(folder_ + "/rank0.btr") << "old";
  ASSERT_TRUE(traces::format::write_job(job.path() + "/rank0.btr", recording(0)));
  const auto collected = job.collect({});
  ASSERT_EQ(collected.recordings.size(), 1U);
  EXPECT_THAT(collected.recordings.front().path, HasSubstr(folder_ + "/rank0."));
  EXPECT_NE(collected.recordings.front().path, folder_ + "/rank0.btr");
  EXPECT_EQ(fs::file_size(folder_ + "/rank0.btr"), 3U);
}

TEST_F(Collect, AFileInUseStaysWhereItIs) {
  const auto job = must(JobFolder::make(folder_));
  const std::string path = job.path() + "/rank0.recording.btr";
  ASSERT_TRUE(traces::format::write_job(path, recording(0)));
  EXPECT_TRUE(job.collect({path}).recordings.empty());
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(Collect, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ + "/file") << "";
  const auto job = error_of(JobFolder::make(folder_ + "/file/out"));
  EXPECT_THAT(job.text(), HasSubstr(folder_ + "/file/out"));
}

// Which sockets are recorders'.
TEST(List, OnlyListeningAbstractSocketsOfOurNameCount) {
  const auto found = listed_in(
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 1 @bubblesim.1000.42\n"
      "0000000000000000: 00000002 00000000 00000000 0005 03 2 @bubblesim.1000.42\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 3 @bubblesim.1000\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 4 @bubblesim.1000.-3\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 5 @bubblesim.x.3\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 6 /run/bubblesim.0.7\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 7 @bubblesim.0.99999999999\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 8\n"
      "nonsense\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().user, 1000U);
  EXPECT_EQ(found.front().pid, 42);
  EXPECT_EQ(found.front().address.text, "@bubblesim.1000.42");
}

TEST(List, AFolderThatIsNotThereHoldsNone) {
  for (const ListedRecorder& recorder : list_recorders("/nowhere/at/all")) {
    EXPECT_EQ(recorder.address.text.front(), '@');
  }
}

// Why a job left no recording.
const JobFacts kMinute{Duration{60s}, {}, false};

TEST(Watch, SeesRecordersOfTheJobsProcesses) {
  RecorderStatus status = testing::own_status(RecorderState::kRecording);
  status.records = 1000;
  status.bytes = 3'000'000;
  testing::FakeRecorder recorder(testing::always(status));
  RecorderWatch watch(getpid(), "/o", {});
  EXPECT_EQ(watch.progress(), "");
  watch.look();
  EXPECT_EQ(watch.seen().count(getpid()), 1U);
  EXPECT_THAT(watch.progress(), HasSubstr("1 of 1 recording, 1000 records, 3 MB"));
}

TEST(Watch, LeavesOtherJobsAlone) {
  testing::FakeRecorder recorder(testing::always(testing::own_status(RecorderState::kRecording)));
  RecorderWatch watch(1 << 30, "/o", {});
  watch.look();
  EXPECT_TRUE(watch.seen().empty());
  EXPECT_TRUE(recorder.heard().empty());
}

TEST(WhyNothing, TheRecordersOwnWordComesFirst) {
  RecorderStatus failed;
  failed.state = RecorderState::kFailed;
  failed.executable = "python3";
  failed.message = "found no libcupti";
  EXPECT_EQ(why_nothing({{42, failed}}, DriverState::kMissing, kMinute),
            "the recorder of process 42 (python3) says: found no libcupti");
}

TEST(WhyNothing, AJobShorterThanTheDelayIsTold) {
  EXPECT_THAT(why_nothing({}, DriverState::kFound, {Duration{2s}, Duration{5s}, false}),
              HasSubstr("ended after 2s, before the recording was to begin"));
  EXPECT_THAT(why_nothing({}, DriverState::kFound, {Duration{2s}, {}, true}),
              HasSubstr("before the recording was to begin"));
}

TEST(WhyNothing, NoDriverAndNoCudaAreDifferentSentences) {
  EXPECT_THAT(why_nothing({}, DriverState::kMissing, kMinute), HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(why_nothing({}, DriverState::kFound, kMinute), HasSubstr("nothing initialised CUDA"));
  EXPECT_THAT(why_nothing({{42, RecorderStatus{}}}, DriverState::kFound, kMinute),
              HasSubstr("recorders were there"));
}

// Jobs: how they start, how they end, which signals reach them.
const Variables kPath{{"PATH", "/usr/bin:/bin"}};

ChildEnd run(const std::string& script) {
  auto job = must(JobProcess::start({"sh", "-c", script}, kPath));
  for (int i = 0; i < 200; ++i) {
    if (const auto end = job->wait(100ms)) return *end;
  }
  ADD_FAILURE() << "did not end: " << script;
  return {};
}

TEST(Job, TheExitCodeIsPassedOn) {
  EXPECT_EQ(run("exit 0").exit_code, 0);
  EXPECT_EQ(run("exit 7").exit_code, 7);
  EXPECT_EQ(run("exit 255").exit_code, 255);
}

TEST(Job, ASignalThatEndsItGivesItsNumberAnd128) {
  const ChildEnd end = run("kill -9 $$");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(end.signal, 9);
}

TEST(Job, ItGetsTheEnvironmentAndNothingElse) {
  auto job = must(JobProcess::start({"sh", "-c", "test \"$A\" = 'x y' && test -z \"$HOME\""},
                                    {{"A", "x y"}, {"PATH", "/usr/bin:/bin"}}));
  EXPECT_EQ(job->wait(10s)->exit_code, 0);
}

TEST(Job, ACommandThatIsNotThereIs127AndOneThatCannotRunIs126) {
  const auto missing = error_of(JobProcess::start({"no-such-command-here"}, kPath));
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_THAT(missing.error.text(), HasSubstr("no-such-command-here"));
  const auto forbidden = error_of(JobProcess::start({"/etc/passwd"}, kPath));
  EXPECT_EQ(forbidden.exit_code, 126);
  const std::string script = ::testing::TempDir() + "no_interpreter_" + std::to_string(getpid());
  std::ofstream(script) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto broken = error_of(JobProcess::start({script}, kPath));
  EXPECT_EQ(broken.exit_code, 126);
  EXPECT_THAT(broken.error.text(), HasSubstr("interpreter"));
  std::filesystem::remove(script);
}

TEST(Job, WaitReturnsInTimeWhileTheJobGoesOn) {
  auto job = must(JobProcess::start({"sleep", "60"}, kPath));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(job->wait(50ms));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  kill(job->pid(), SIGKILL);
  EXPECT_EQ(job->wait(10s)->signal, SIGKILL);
}

TEST(Job, ASignalSentToUsIsSentOn) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    auto job = must(JobProcess::start({"sleep", "60"}, kPath));
    kill(getpid(), signal);
    const auto end = must(job->wait(10s));
    EXPECT_EQ(end.signal, signal);
  }
}

TEST(Job, SignalsAreAsTheyWereAfterwardsAndInTheJob) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  // The kernel's list of blocked signals of the job: none.
  EXPECT_EQ(run("grep -q '^SigBlk:.0*$' /proc/self/status").exit_code, 0);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
}

TEST(ProcessInfo, KnowsThisProcess) {
  const auto info = must(process_info(getpid()));
  EXPECT_EQ(info.user, geteuid());
  EXPECT_EQ(info.parent, getppid());
  EXPECT_FALSE(process_info(0));
  EXPECT_EQ(recorder_trace(getpid()), RecorderTrace::kNone);
}

TEST(ProcessInfo, ChildrenOfChildrenAreDescendants) {
  auto job = must(JobProcess::start({"sh", "-c", "sleep 60 & wait"}, kPath));
  std::vector<pid_t> found;
  for (int i = 0; i < 100 && found.size() < 2; ++i) {
    found = descendants(getpid());
    usleep(10000);
  }
  EXPECT_GE(found.size(), 2U);
  for (const pid_t pid : found) kill(pid, SIGKILL);
  EXPECT_TRUE(job->wait(10s));
}

// The environment names the library, but a shell never loads it.
TEST(ProcessInfo, AProcessThatOnlyWasAskedToLoadTheRecorderIsTold) {
  Variables variables = kPath;
  variables["CUDA_INJECTION64_PATH"] = "/x/libbubblesim_capture.so";
  auto job = must(JobProcess::start({"sleep", "60"}, variables));
  RecorderTrace trace = RecorderTrace::kUnknown;
  for (int i = 0; i < 1000 && trace == RecorderTrace::kUnknown; ++i) {
    trace = recorder_trace(job->pid());
    usleep(1000);
  }
  EXPECT_EQ(trace, RecorderTrace::kOnlyAsked);
  kill(job->pid(), SIGKILL);
  EXPECT_TRUE(job->wait(10s));
}

}  // namespace
}  // namespace bubblesim::capture
