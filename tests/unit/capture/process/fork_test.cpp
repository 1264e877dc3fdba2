// Children of a recorded process: everything is off in them, and the parent records on.
#include <gtest/gtest.h>

#include "tests/unit/capture/process/job_process.hpp"

namespace bubblesim::capture {
namespace {

using Fork = JobTest;

using Names = std::vector<std::string>;

/// A child of a fork has no thread whose stack LeakSanitizer could search: what only the writer
/// held would count as leaked.
Variables without_leak_check(Variables variables) {
  variables["ASAN_OPTIONS"] = "detect_leaks=0";
  return variables;
}

TEST_F(Fork, AChildThatExitsHarmsNeitherItselfNorTheRecording) {
  end = run_job({"init", "traced", "launch:100", "fork:exit", "launch:100",
                              "fork:quit", "launch:100"},
                             without_leak_check(recording_to(folder)));
  EXPECT_EQ(end.code, 0) << end.error;
  ASSERT_EQ(folder.files(), Names{"rank0.btr"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 300U);
}

TEST_F(Fork, ManyWorkersAtOnceWhileItIsRecorded) {
  succeed({"init", "traced", "launch:5000", "workers:8", "launch:5000", "workers:8"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 10000U);
}

TEST_F(Fork, OfAnIdleProcessLeavesItIdle) {
  EXPECT_EQ(run_job({"init", "fork:quit", "workers:4"}, {}).code, 0);
}

TEST_F(Fork, AChildProgramThatIsAskedTooGetsAFileOfItsOwn) {
  succeed({"init", "traced", "launch:10", "spawn:init+traced+launch=20"});
  const Names files = folder.files();
  ASSERT_EQ(files.size(), 2U);  // the child ends first: rank0.btr is its
  EXPECT_EQ(files[0], "rank0.btr");
  EXPECT_EQ(read_recording(folder.file(files[0])).kernels("kernel"), 20U);
  EXPECT_EQ(read_recording(folder.file(files[1])).kernels("kernel"), 10U);
}

TEST_F(Fork, AChildProgramThatIsNotAskedStaysIdle) {
  JobProcess job({"init", "say:here", "hear", "launch:10", "spawn:init+launch=20", "launch:10"},
                 {});
  ASSERT_TRUE(job.says("here"));
  ASSERT_TRUE(job.start(folder.path().string()));
  (void)job.await(RecorderState::kRecording);
  job.tell();
  end = job.wait();
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(folder.files(), Names{"rank0.btr"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 20U);
}

TEST_F(Fork, ALauncherThatUsesNoGpuLeavesRankZeroToItsWorker) {
  // The launcher has no rank and asks CUDA how many devices there are, so it is recorded as well.
  succeed({"init", "traced", "spawn:init+traced+launch=20"});
  ASSERT_EQ(folder.files(), Names{"rank0.btr"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 20U);
}

TEST_F(Fork, AnExecIsInjectedAnewAndLeavesTheChunksOfTheProgramBefore) {
  succeed({"init", "traced", "launch:1000", "sleep:1200", "exec:init+traced+launch=20"});
  ASSERT_EQ(folder.files(), (Names{"rank0.btr", "rank0.recording.btr"}));
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 20U);
  EXPECT_EQ(read_recording(folder.file("rank0.recording.btr")).kernels("kernel"), 1000U);
}

}  // namespace
}  // namespace bubblesim::capture
