// What a job does is in the file: kernels, calls, copies, edges, ranges; by one thread or many.
#include <gtest/gtest.h>

#include "tests/unit/capture/process/job_process.hpp"

namespace bubblesim::capture {
namespace {

TEST(Records, KernelsAndTheirLaunchesOfOneThread) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced", "launch:1000"}, recording_to(folder));
  EXPECT_EQ(end.code, 0) << end.error;
  ASSERT_EQ(folder.files(), std::vector<std::string>{"rank0.btr"});
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.kernels("kernel"), 1000U);
  EXPECT_EQ(recorded.calls("cudaLaunchKernel"), 1000U);
  EXPECT_EQ(recorded.trace.device.name, "NVIDIA Fake 9000");
  EXPECT_EQ(recorded.trace.device.sm_count, 132U);
  EXPECT_EQ(recorded.trace.provenance.format, "bubblesim-recording");
  EXPECT_EQ(recorded.trace.provenance.source, "fake_job");
  EXPECT_GE(recorded.trace.clocks.size(), 2U);
  EXPECT_TRUE(recorded.file_counters.empty());
}

TEST(Records, TheSummaryIsOneLine) {
  const ScratchFolder folder;
  const JobEnd end = run_job({"init", "traced", "launch:10"}, recording_to(folder));
  EXPECT_TRUE(end.error.starts_with("bubblesim capture: rank 0: 20 records of ")) << end.error;
  EXPECT_EQ(std::count(end.error.begin(), end.error.end(), '\n'), 1) << end.error;
}

TEST(Records, OfThreadsThatHaveABufferEach) {
  const ScratchFolder folder;
  EXPECT_EQ(run_job({"init", "traced", "threads:8:2000"}, recording_to(folder)).code, 0);
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.kernels("threaded"), 16000U);
  EXPECT_EQ(recorded.calls("cudaLaunchKernel"), 16000U);
  EXPECT_GE(recorded.trace.threads.size(), 8U);
  EXPECT_EQ(recorded.trace.streams.size(), 8U);  // 2 devices of 4 streams
}

TEST(Records, OfThreadsThatShareABuffer) {
  const ScratchFolder folder;
  const Variables variables = recording_to(folder, {{"FAKE_CUPTI", "shared"}});
  EXPECT_EQ(run_job({"init", "traced", "threads:8:20000"}, variables).code, 0);
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("threaded"), 160000U);
}

TEST(Records, WhenBuffersComeBackInAnotherOrder) {
  const ScratchFolder folder;
  const Variables variables = recording_to(folder, {{"FAKE_CUPTI", "shuffle"}});
  EXPECT_EQ(run_job({"init", "traced", "threads:8:500", "sleep:700", "threads:8:500"}, variables)
                .code, 0);
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("threaded"), 8000U);
}

TEST(Records, OfGraphsNodeByNode) {
  const ScratchFolder folder;
  EXPECT_EQ(run_job({"init", "traced", "graph:10:50"}, recording_to(folder)).code, 0);
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.kernels("node"), 500U);
  EXPECT_EQ(recorded.calls("cudaGraphLaunch"), 10U);
}

TEST(Records, CopiesMemsetsWaitsAndAllocations) {
  const ScratchFolder folder;
  EXPECT_EQ(run_job({"init", "traced", "mixed:20"}, recording_to(folder)).code, 0);
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.trace.device_ops.size(), 60U);  // 20 copies, 20 memsets, 20 kernels
  EXPECT_EQ(recorded.calls("cudaStreamWaitEvent"), 20U);
  EXPECT_EQ(recorded.trace.syncs.size(), 60U);   // 20 records, 20 waits, 20 synchronisations
  EXPECT_EQ(recorded.trace.memory.size(), 40U);  // 20 allocated, 20 freed
}

TEST(Records, StopAfterSoManyWholeIterations) {
  const ScratchFolder folder;
  const Variables variables = recording_to(folder, {{kEnvIterations, "3"}});
  const JobEnd end = run_job({"init", "traced", "mark_iterations:200:10", "untraced"}, variables);
  EXPECT_EQ(end.code, 0) << end.error;
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_GE(recorded.markers(traces::MarkerKind::kIteration), 3U);
  EXPECT_LT(recorded.markers(traces::MarkerKind::kIteration), 150U);
  EXPECT_GE(recorded.trace.markers.front().number, 0);
}

TEST(Records, TheRankIsThatOfTheJob) {
  const ScratchFolder folder;
  const Variables variables = recording_to(folder, {{"RANK", "3"}, {"WORLD_SIZE", "8"}});
  EXPECT_EQ(run_job({"init", "traced", "launch:5"}, variables).code, 0);
  const Recorded recorded = read_recording(folder.file("rank3.btr"));
  EXPECT_EQ(recorded.trace.rank, 3U);
  EXPECT_EQ(recorded.trace.world_size, 8U);
}

TEST(Records, WithoutNamesAndWithUnknownOnesInBetween) {
  const ScratchFolder folder;
  const Variables variables = recording_to(folder, {{"FAKE_CUPTI", "null_names,unknown"}});
  EXPECT_EQ(run_job({"init", "traced", "launch:100"}, variables).code, 0);
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.trace.device_ops.size(), 100U);
  EXPECT_EQ(recorded.trace.counters.count("cupti_kernels_unnamed"), 100U);
  EXPECT_EQ(recorded.trace.counters.count("cupti_unknown_records_skipped"), 100U);
}

TEST(Records, ThatCuptiDroppedAreCounted) {
  const ScratchFolder folder;
  const Variables variables = recording_to(folder, {{"FAKE_CUPTI", "drops=17"}});
  const JobEnd end = run_job({"init", "traced", "launch:100"}, variables);
  EXPECT_NE(end.error.find("lost: 17 records"), std::string::npos) << end.error;
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.trace.counters.count("capture_cupti_dropped"), 17U);
}

TEST(Records, OfMoreThreadsThanBuffersAreKeptOrCounted) {
  const ScratchFolder folder;
  // 72 buffers at most; 100 threads want one each. Every kernel has a call: 100 * 50 * 2 records.
  EXPECT_EQ(run_job({"init", "traced", "threads:100:50"}, recording_to(folder)).code, 0);
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  const std::uint64_t discarded = recorded.trace.counters.count("capture_records_discarded");
  EXPECT_EQ(recorded.kernels("threaded") + recorded.calls("cudaLaunchKernel") + discarded, 10000U);
}

TEST(Records, WithoutABufferLeftAreDiscardedAndCounted) {
  const ScratchFolder folder;
  // CUPTI keeps all 72 buffers for good; those beyond are of 64 KiB.
  const Variables variables = recording_to(folder, {{"FAKE_CUPTI", "keep_large"}});
  const JobEnd end = run_job({"init", "traced", "threads:100:5", "sleep:1200", "launch:10"},
                             variables);
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(folder.files(), std::vector<std::string>{"rank0.btr"});
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.kernels("kernel"), 0U);
  EXPECT_GE(recorded.trace.counters.count("capture_records_discarded"), 20U);
}

TEST(Records, PrioritiesOfStreamsThatWereThereBefore) {
  const ScratchFolder folder;
  // At the end the job's buffer comes back before the recorder's, which has the streams.
  const std::vector<std::string> verbs{"init", "traced", "sleep:100", "launch:10"};
  EXPECT_EQ(run_job(verbs, recording_to(folder)).code, 0);
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  ASSERT_FALSE(recorded.trace.streams.empty());
  EXPECT_EQ(recorded.trace.streams.front().priority, -5);
  EXPECT_EQ(recorded.trace.counters.count("cupti_stream_priorities_late"), 0U);
}

TEST(Records, OfAJobThatGoesOnEndWithTheStop) {
  const ScratchFolder folder;
  // CUPTI keeps a buffer, so that the recording flushes again and again for a second at its end;
  // each flush takes the job's buffer. There are 72: they come back into use meanwhile.
  const Variables variables =
      recording_to(folder, {{kEnvDuration, "200ms"}, {"FAKE_CUPTI", "keep=1"}});
  const JobEnd end = run_job({"init", "traced", "rate:4000:500", "untraced"}, variables);
  EXPECT_EQ(end.code, 0) << end.error;
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.trace.counters.count("capture_records_discarded"), 0U);
  EXPECT_GT(recorded.kernels("kernel"), 0U);
  EXPECT_GT(recorded.trace.counters.count("capture_records_after_stop"), 100U);
  const TraceTime stop = recorded.trace.clocks.back().at;
  for (const traces::HostCall& call : recorded.trace.host_calls) EXPECT_LE(call.start, stop);
}

TEST(Records, BuffersThatNeverComeBackDoNotHoldTheJobUp) {
  const ScratchFolder folder;
  // The first is the recorder's own, with devices and streams; the others are two threads'.
  const Variables variables = recording_to(folder, {{"FAKE_CUPTI", "keep=3"}});
  const JobEnd end = run_job({"init", "traced", "threads:4:100", "sleep:700", "launch:10"},
                             variables);
  EXPECT_EQ(end.code, 0) << end.error;
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.kernels("kernel"), 10U);
  EXPECT_EQ(recorded.kernels("threaded"), 200U);
}

TEST(Records, MemoryStaysBounded) {
  if (std::string(CAPTURE_SANITIZED) != "") GTEST_SKIP() << "sanitizers need memory of their own";
  const ScratchFolder folder;
  const JobEnd end =
      run_job({"init", "traced", "threads:16:40000", "rss:200"}, recording_to(folder));
  EXPECT_EQ(end.code, 0) << end.error;
}

}  // namespace
}  // namespace bubblesim::capture
