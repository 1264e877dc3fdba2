// However a job ends, it ends as it would have, and the file holds what could be saved.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/unit/capture/process/job_process.hpp"

namespace bubblesim::capture {
namespace {

using Endings = JobTest;

using Names = std::vector<std::string>;

TEST_F(Endings, TheCodeOfExitIsTheJobsOwn) {
  run({"init", "traced", "launch:100", "exit:42"});
  EXPECT_EQ(end.code, 42) << end.error;
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 100U);
}

TEST_F(Endings, ByQuickExitWholeChunksAreLeft) {
  run({"init", "traced", "launch:5000", "sleep:1200", "quit:7"});
  EXPECT_EQ(end.code, 7) << end.error;
  ASSERT_EQ(folder.files(), Names{"rank0.recording.btr"});
  const Recorded recorded = read_recording(folder.file("rank0.recording.btr"));
  EXPECT_EQ(recorded.kernels("kernel"), 5000U);
  EXPECT_EQ(recorded.file_counters.count("btr_end_missing"), 1U);
}

TEST_F(Endings, KilledWholeChunksAreLeft) {
  run({"init", "traced", "launch:20000", "sleep:1200", "rate:300:1000", "kill"});
  EXPECT_EQ(end.signal, SIGKILL);
  const Recorded recorded = read_recording(folder.file("rank0.recording.btr"));
  EXPECT_GE(recorded.kernels("kernel"), 20000U);
  EXPECT_LE(recorded.kernels("kernel"), 20300U);
  EXPECT_EQ(recorded.file_counters.count("btr_chunks_malformed"), 0U);
  EXPECT_EQ(recorded.trace.device.name, "NVIDIA Fake 9000");
}

TEST_F(Endings, AtOnceWhileCuptiIsStillBeingSetUp) {
  succeed({"init", "launch:3", "sleep:100"}, {{"FAKE_CUPTI", "subscribe_ms=500"}});
  EXPECT_EQ(folder.files(), Names{});
}

TEST_F(Endings, AtOnceAfterInitialisation) { succeed({"init"}); }

TEST_F(Endings, BeforeTheTimeOfTheStartHasCome) {
  succeed({"init", "launch:3"}, {{kEnvStart, "3600"}});
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(folder.files(), Names{});
}

TEST_F(Endings, WithoutACudaCallNoFileIsLeft) {
  succeed({"init", "traced"});
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(folder.files(), Names{});
}

TEST_F(Endings, OfTheContextFlushWhatItHeld) {
  succeed({"init", "traced", "launch:100", "sleep:20", "destroy", "launch:50"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 150U);
}

TEST_F(Endings, OfTheLibraryByDlcloseDoNotHappen) {
  succeed({"dlclose", "init", "traced", "launch:100"});
  // Recording began before there was a driver and failed; what counts is that nothing crashed.
}

TEST_F(Endings, WithAFlushThatTakesLong) {
  succeed({"init", "traced", "launch:100", "sleep:600"}, {{"FAKE_CUPTI", "flush_ms=300"}});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 100U);
}

}  // namespace
}  // namespace bubblesim::capture
