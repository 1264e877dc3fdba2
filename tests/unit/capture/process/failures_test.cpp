// Whatever fails, the job goes on, one line says why, and what was recorded is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/capture/process/job_process.hpp"

namespace bubblesim::capture {
namespace {

using ::testing::HasSubstr;
using Names = std::vector<std::string>;

/// A job that is asked to record and cannot: it ends well, says one line and leaves no file.
std::string why_not(const ScratchFolder& folder, const Variables& more,
                    const std::vector<std::string>& verbs = {"init", "launch:10", "sleep:300"}) {
  const JobEnd end = run_job(verbs, recording_to(folder, more));
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(folder.files(), Names{});
  EXPECT_TRUE(end.error.starts_with("bubblesim capture: cannot start: ")) << end.error;
  EXPECT_EQ(std::count(end.error.begin(), end.error.end(), '\n'), 1) << end.error;
  return end.error;
}

TEST(Failures, AnotherProfilerIsNamedAndLeftAlone) {
  const ScratchFolder folder;
  EXPECT_THAT(why_not(folder, {{"FAKE_CUPTI", "subscribe=39,holder=Nsight Systems"}}),
              HasSubstr("Nsight Systems has CUPTI in this process"));
}

TEST(Failures, WithoutADriver) {
  const ScratchFolder folder;
  EXPECT_THAT(why_not(folder, {}, {"inject:1", "sleep:300"}), HasSubstr("is there a driver"));
}

TEST(Failures, WithoutCupti) {
  const ScratchFolder folder;
  EXPECT_THAT(why_not(folder, {{kEnvCupti, "/nowhere/libcupti.so"}}),
              HasSubstr("/nowhere/libcupti.so"));
}

TEST(Failures, OfAKindThatNoRecordingCanDoWithout) {
  const ScratchFolder folder;
  EXPECT_THAT(why_not(folder, {{"FAKE_CUPTI", "fail_kind=10,fail_with=14"}}),
              HasSubstr("CONCURRENT_KERNEL"));
}

TEST(Failures, OfPermission) {
  const ScratchFolder folder;
  EXPECT_THAT(why_not(folder, {{"FAKE_CUPTI", "subscribe=35"}}), HasSubstr("does not allow"));
}

TEST(Failures, OfTheRequestInTheEnvironment) {
  const ScratchFolder folder;
  EXPECT_THAT(why_not(folder, {{kEnvDuration, "soon"}}), HasSubstr(kEnvDuration));
}

TEST(Failures, OfAFolderThatCannotBeMade) {
  const ScratchFolder folder;
  EXPECT_THAT(why_not(folder, {{kEnvOutput, "/proc/nothing/here"}}),
              HasSubstr("/proc/nothing/here"));
}

TEST(Failures, WithStderrClosedNothingElseIsWrittenTo) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"closed_stderr", "init", "launch:10", "sleep:200"},
                             recording_to(folder, {{"FAKE_CUPTI", "subscribe=39"}}));
  EXPECT_EQ(end.code, 0);
}

TEST(Failures, OfTheDiskEndTheRecordingAndKeepTheChunks) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"limit:60000", "init", "traced", "launch:3000", "sleep:700",
                              "launch:200000", "sleep:700", "untraced", "launch:10"},
                             recording_to(folder));
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_THAT(end.error, HasSubstr("cannot write: File too large"));
  EXPECT_THAT(end.error, HasSubstr("lost: "));
  ASSERT_EQ(folder.files(), Names{"rank0.recording.btr"});
  const Recorded recorded = read_recording(folder.file("rank0.recording.btr"));
  EXPECT_GE(recorded.kernels("kernel"), 3000U);
}

TEST(Failures, OfTheDiskEndRecordingsThatSignalsWouldRepeat) {
  const ScratchFolder folder;
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

TEST(Failures, OfTheDeviceEndTheRecordingAndKeepTheFile) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced", "launch:100", "untraced", "launch:10"},
                             recording_to(folder, {{"FAKE_CUPTI", "fatal_after=100"}}));
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_THAT(end.error, HasSubstr("the fake device fell off the bus"));
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 100U);
}

TEST(Failures, OfStoppingAreCounted) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced", "launch:100"},
                             recording_to(folder, {{"FAKE_CUPTI", "stop_fails"}}));
  EXPECT_EQ(end.code, 0) << end.error;
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.kernels("kernel"), 100U);
  EXPECT_EQ(recorded.trace.counters.count("capture_stop_incomplete"), 1U);
}

TEST(Failures, TwoCallsOfTheEntryPointAreOne) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "inject:3", "traced", "launch:100"}, recording_to(folder));
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(folder.files(), Names{"rank0.btr"});
}

TEST(Failures, SignalsNeverReachTheRecordersThreads) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced", "launch:10", "signals:300"}, recording_to(folder));
  EXPECT_EQ(end.code, 0) << end.error;
}

}  // namespace
}  // namespace bubblesim::capture
