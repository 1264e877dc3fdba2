// Whatever fails, the job goes on, one line says why, and what was recorded is kept.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/capture/process/job_process.hpp"

namespace bubblesim::capture {
namespace {

using Failures = JobTest;

using ::testing::HasSubstr;
using Names = std::vector<std::string>;

struct Refused {
  std::string name, why;
  Variables more;
  std::vector<std::string> verbs{"init", "launch:10", "sleep:300"};
};
class Refusals : public JobTest, public testing::WithParamInterface<Refused> {};

// The job ends well, says one line and leaves no file.
TEST_P(Refusals, AreSaidAndLeaveNoFile) {
  succeed(GetParam().verbs, GetParam().more);
  EXPECT_EQ(folder.files(), Names{});
  EXPECT_TRUE(end.error.starts_with("bubblesim capture: cannot start: ")) << end.error;
  EXPECT_EQ(std::count(end.error.begin(), end.error.end(), '\n'), 1) << end.error;
  EXPECT_THAT(end.error, HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(Failures, Refusals, testing::Values(
    Refused{"AnotherProfilerIsNamedAndLeftAlone", "Nsight Systems has CUPTI in this process",
            {{"FAKE_CUPTI", "subscribe=39,holder=Nsight Systems"}}},
    Refused{"WithoutADriver", "is there a driver", {}, {"inject:1", "sleep:300"}},
    Refused{"WithoutCupti", "/nowhere/libcupti.so", {{kEnvCupti, "/nowhere/libcupti.so"}}},
    Refused{"OfAKindThatNoRecordingCanDoWithout", "CONCURRENT_KERNEL",
            {{"FAKE_CUPTI", "fail_kind=10,fail_with=14"}}},
    Refused{"OfPermission", "does not allow", {{"FAKE_CUPTI", "subscribe=35"}}},
    Refused{"OfTheRequestInTheEnvironment", kEnvDuration, {{kEnvDuration, "soon"}}},
    Refused{"OfAFolderThatCannotBeMade", "/proc/nothing/here",
            {{kEnvOutput, "/proc/nothing/here"}}}),
    [](const auto& row) { return row.param.name; });

TEST_F(Failures, WithStderrClosedNothingElseIsWrittenTo) {
  succeed({"closed_stderr", "init", "launch:10", "sleep:200"}, {{"FAKE_CUPTI", "subscribe=39"}});
}

TEST_F(Failures, OfTheDiskEndTheRecordingAndKeepTheChunks) {
  succeed({"limit:60000", "init", "traced", "launch:3000", "sleep:700", "launch:200000",
          "sleep:700", "untraced", "launch:10"});
  EXPECT_THAT(end.error, HasSubstr("cannot write: File too large"));
  EXPECT_THAT(end.error, HasSubstr("lost: "));
  ASSERT_EQ(folder.files(), Names{"rank0.recording.btr"});
  EXPECT_GE(read_recording(folder.file("rank0.recording.btr")).kernels("kernel"), 3000U);
}

TEST_F(Failures, OfTheDiskEndRecordingsThatSignalsWouldRepeat) {
  JobProcess job({"limit:60000", "init", "traced", "launch:200000", "say:here", "hear"},
                 recording_to(folder, {{kEnvLast, "60s"}, {kEnvSignal, "USR2"}}));
  ASSERT_TRUE(job.says("here"));
  ASSERT_EQ(::kill(job.pid(), SIGUSR2), 0);
  EXPECT_THAT(job.await(RecorderState::kFailed).message, HasSubstr("cannot write"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(job.status()->state, RecorderState::kFailed);
  job.tell();
  EXPECT_EQ(job.wait().code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.file("signal-2")));
}

TEST_F(Failures, OfTheDeviceEndTheRecordingAndKeepTheFile) {
  succeed({"init", "traced", "launch:100", "untraced", "launch:10"},
          {{"FAKE_CUPTI", "fatal_after=100"}});
  EXPECT_THAT(end.error, HasSubstr("the fake device fell off the bus"));
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 100U);
}

TEST_F(Failures, OfStoppingAreCounted) {
  const Recorded recorded = record({"init", "traced", "launch:100"},
                                   {{"FAKE_CUPTI", "stop_fails"}});
  EXPECT_EQ(recorded.kernels("kernel"), 100U);
  EXPECT_EQ(recorded.trace.counters.count("capture_stop_incomplete"), 1U);
}

TEST_F(Failures, TwoCallsOfTheEntryPointAreOne) {
  succeed({"init", "inject:3", "traced", "launch:100"});
  EXPECT_EQ(folder.files(), Names{"rank0.btr"});
}

TEST_F(Failures, SignalsNeverReachTheRecordersThreads) {
  succeed({"init", "traced", "launch:10", "signals:300"});
}

}  // namespace
}  // namespace bubblesim::capture
