// However a job ends, it ends as it would have, and the file holds what could be saved.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/unit/capture/process/job_process.hpp"

namespace bubblesim::capture {
namespace {

using Names = std::vector<std::string>;

TEST(Endings, TheCodeOfExitIsTheJobsOwn) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced", "launch:100", "exit:42"}, recording_to(folder));
  EXPECT_EQ(end.code, 42) << end.error;
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 100U);
}

TEST(Endings, ByQuickExitWholeChunksAreLeft) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced", "launch:5000", "sleep:1200", "quit:7"},
                             recording_to(folder));
  EXPECT_EQ(end.code, 7) << end.error;
  ASSERT_EQ(folder.files(), Names{"rank0.recording.btr"});
  const Recorded recorded = read_recording(folder.file("rank0.recording.btr"));
  EXPECT_EQ(recorded.kernels("kernel"), 5000U);
  EXPECT_EQ(recorded.file_counters.count("btr_end_missing"), 1U);
}

TEST(Endings, KilledWholeChunksAreLeft) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced", "launch:20000", "sleep:1200", "rate:300:1000",
                              "kill"}, recording_to(folder));
  EXPECT_EQ(end.signal, SIGKILL);
  const Recorded recorded = read_recording(folder.file("rank0.recording.btr"));
  EXPECT_GE(recorded.kernels("kernel"), 20000U);
  EXPECT_LE(recorded.kernels("kernel"), 20300U);
  EXPECT_EQ(recorded.file_counters.count("btr_chunks_malformed"), 0U);
  EXPECT_EQ(recorded.trace.device.name, "NVIDIA Fake 9000");
}

TEST(Endings, AtOnceWhileCuptiIsStillBeingSetUp) {
  const ScratchFolder folder;
  const Variables variables = recording_to(folder, {{"FAKE_CUPTI", "subscribe_ms=500"}});
  const JobEnd end = run_job({"init", "launch:3", "sleep:100"}, variables);
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(folder.files(), Names{});
}

TEST(Endings, AtOnceAfterInitialisation) {
  const ScratchFolder folder;
  EXPECT_EQ(run_job({"init"}, recording_to(folder)).code, 0);
}

TEST(Endings, BeforeTheTimeOfTheStartHasCome) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "launch:3"}, recording_to(folder, {{kEnvStart, "3600"}}));
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(folder.files(), Names{});
}

TEST(Endings, WithoutACudaCallNoFileIsLeft) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced"}, recording_to(folder));
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(folder.files(), Names{});
}

TEST(Endings, OfTheContextFlushWhatItHeld) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced", "launch:100", "sleep:20", "destroy", "launch:50"},
                             recording_to(folder));
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 150U);
}

TEST(Endings, OfTheLibraryByDlcloseDoNotHappen) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"dlclose", "init", "traced", "launch:100"}, recording_to(folder));
  EXPECT_EQ(end.code, 0) << end.error;
  // Recording began before there was a driver and failed; what counts is that nothing crashed.
}

TEST(Endings, WithAFlushThatTakesLong) {
  const ScratchFolder folder;
  const Variables variables = recording_to(folder, {{"FAKE_CUPTI", "flush_ms=300"}});
  const JobEnd end = run_job({"init", "traced", "launch:100", "sleep:600"}, variables);
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 100U);
}

}  // namespace
}  // namespace bubblesim::capture
