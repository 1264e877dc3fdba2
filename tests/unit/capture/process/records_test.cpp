// What a job does is in the file: kernels, calls, copies, edges, ranges; by one thread or many.
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "tests/unit/capture/process/job_process.hpp"
#include "traces/join/join_recording.hpp"

namespace bubblesim::capture {
namespace {

using Records = JobTest;

TEST_F(Records, KernelsAndTheirLaunchesOfOneThread) {
  succeed({"init", "traced", "launch:1000"});
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

TEST_F(Records, TheSummaryIsOneLine) {
  run({"init", "traced", "launch:10"});
  EXPECT_TRUE(end.error.starts_with("bubblesim capture: rank 0: 20 records of ")) << end.error;
  EXPECT_EQ(std::count(end.error.begin(), end.error.end(), '\n'), 1) << end.error;
}

TEST_F(Records, OfThreadsThatHaveABufferEach) {
  const Recorded recorded = record({"init", "traced", "threads:8:2000"});
  EXPECT_EQ(recorded.kernels("threaded"), 16000U);
  EXPECT_EQ(recorded.calls("cudaLaunchKernel"), 16000U);
  EXPECT_GE(recorded.trace.threads.size(), 8U);
  EXPECT_EQ(recorded.trace.streams.size(), 8U);  // 2 devices of 4 streams
}

TEST_F(Records, OfThreadsThatShareABuffer) {
  succeed({"init", "traced", "threads:8:20000"}, {{"FAKE_CUPTI", "shared"}});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("threaded"), 160000U);
}

TEST_F(Records, WhenBuffersComeBackInAnotherOrder) {
  succeed({"init", "traced", "threads:8:500", "sleep:700", "threads:8:500"},
          {{"FAKE_CUPTI", "shuffle"}});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("threaded"), 8000U);
}

TEST_F(Records, OfGraphsNodeByNode) {
  const Recorded recorded = record({"init", "traced", "graph:10:50"});
  EXPECT_EQ(recorded.kernels("node"), 500U);
  EXPECT_EQ(recorded.calls("cudaGraphLaunch"), 10U);
}

// 1000 floats of each of 8 ranks, announced once, when the graph was captured.
TEST_F(Records, CollectivesInGraphsAreThoseOfTheirCapture) {
  Recorded recorded = record({"init", "traced", "nccl_graph:5"});
  traces::join_recording(recorded.trace);
  ASSERT_EQ(recorded.trace.collectives.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    const traces::Collective& reduce = recorded.trace.collectives[i];
    EXPECT_EQ(reduce.kind, traces::CollectiveKind::kAllReduce);
    EXPECT_EQ(reduce.bytes, 4000U);
    EXPECT_EQ(recorded.trace.names[reduce.group], "nccl:000000000000abcd");
    EXPECT_EQ(reduce.group_size, 8U);
    EXPECT_EQ(reduce.place, 3U);
    EXPECT_EQ(reduce.sequence, i);
  }
  EXPECT_EQ(recorded.kernels("gemm"), 5U);
  EXPECT_EQ(recorded.trace.counters.count("join_collectives_without_note"), 0U);
}

TEST_F(Records, CopiesMemsetsWaitsAndAllocations) {
  const Recorded recorded = record({"init", "traced", "mixed:20"});
  EXPECT_EQ(recorded.trace.device_ops.size(), 60U);  // 20 copies, 20 memsets, 20 kernels
  EXPECT_EQ(recorded.calls("cudaStreamWaitEvent"), 20U);
  EXPECT_EQ(recorded.trace.syncs.size(), 60U);   // 20 records, 20 waits, 20 synchronisations
  EXPECT_EQ(recorded.trace.memory.size(), 40U);  // 20 allocated, 20 freed
}

// Of each of 6 values: what stream 8 does after its wait comes after what stream 7 did before its
// write, whichever call was made first.
TEST_F(Records, ValuesInMemoryOrderStreamsAsEventsDo) {
  Recorded recorded = record({"init", "traced", "values:6"});
  EXPECT_EQ(recorded.calls("cuStreamWaitValue32"), 6U);
  traces::join_recording(recorded.trace);
  const traces::RankTrace& trace = recorded.trace;
  ASSERT_EQ(trace.edges.size(), 6U);
  for (const traces::Edge& edge : trace.edges) {
    const traces::DeviceOp& before = trace.device_ops[edge.before.index()];
    const traces::DeviceOp& after = trace.device_ops[edge.after.index()];
    EXPECT_EQ(trace.names[before.name], "first");
    EXPECT_EQ(trace.names[after.name], "then");
    EXPECT_LT(before.launch, after.launch);
    EXPECT_LE(after.launch - before.launch, 3U);
  }
  EXPECT_EQ(trace.counters.count("join_stream_waits_without_record"), 0U);
}

TEST_F(Records, ASynchronisationNamesTheGpuOfItsContext) {
  const Recorded recorded = record({"init", "traced", "gpus:3"});
  ASSERT_EQ(recorded.trace.syncs.size(), 3U);
  for (const traces::SyncRecord& sync : recorded.trace.syncs) EXPECT_EQ(sync.device, 2U);  // GPU 1
}

TEST_F(Records, StopAfterSoManyWholeIterations) {
  const Recorded recorded = record({"init", "traced", "mark_iterations:200:10", "untraced"},
                                   {{kEnvIterations, "3"}});
  EXPECT_GE(recorded.markers(traces::MarkerKind::kIteration), 3U);
  EXPECT_LT(recorded.markers(traces::MarkerKind::kIteration), 150U);
  EXPECT_GE(recorded.trace.markers.front().number, 0);
}

// Two ranks that are seconds apart have the same iterations. CUPTI is on before the 150th: what
// it recorded then is left out.
TEST_F(Records, BeginWithTheIterationThatWasAskedFor) {
  const Recorded recorded = record({"init", "sleep:200", "mark_iterations:400:10"},
                                   {{kEnvFirstIteration, "150"}, {kEnvIterations, "3"}});
  ASSERT_GE(recorded.markers(traces::MarkerKind::kIteration), 3U) << end.error;
  const traces::Marker& first = recorded.trace.markers.front();
  EXPECT_EQ(first.number, 150);
  EXPECT_LT(recorded.trace.markers.back().number, 300);
  ASSERT_FALSE(recorded.trace.device_ops.empty());
  for (const auto& op : recorded.trace.device_ops) EXPECT_GE(op.start, first.start);
  for (const auto& call : recorded.trace.host_calls) EXPECT_GE(call.start, first.start);
  EXPECT_EQ(recorded.kernels("kernel") % 10, 0U);  // of whole iterations
  EXPECT_EQ(recorded.trace.counters.count("capture_first_iteration_missed"), 0U);
}

// Of 600 iterations the 100th to 102nd, the 250th to 252nd, ...: a file each.
TEST_F(Records, AFewOfEveryManyIterations) {
  succeed({"init", "sleep:200", "mark_iterations:600:5"},
          {{kEnvFirstIteration, "100"}, {kEnvIterations, "3"}, {kEnvEvery, "150"}});
  for (const int first : {100, 250, 400}) {
    const std::string path = folder.file("iterations-" + std::to_string(first)) + "/rank0.btr";
    const Recorded recorded = read_recording(path);
    ASSERT_GE(recorded.markers(traces::MarkerKind::kIteration), 3U) << path << end.error;
    EXPECT_EQ(recorded.trace.markers.front().number, first);
    EXPECT_LT(recorded.trace.markers.back().number, first + 100);
    EXPECT_EQ(recorded.trace.counters.count("capture_first_iteration_missed"), 0U);
  }
}

// No range marks iterations: two ranks, one slower and later, begin with the 2000th all-reduce of
// the communicator of most ranks.
TEST_F(Records, BeginWithTheCollectiveThatWasAskedFor) {
  for (const std::vector<std::string>& verbs :
       {std::vector<std::string>{"init", "sleep:200", "nccl:2900:1000"},
        std::vector<std::string>{"init", "sleep:400", "nccl:2900:1500"}}) {
    const ScratchFolder own;
    end = run_job(verbs, recording_to(own, {{kEnvCount, "collectives"},
                                            {kEnvFirstIteration, "2000"}, {kEnvIterations, "20"}}));
    EXPECT_EQ(end.code, 0) << end.error;
    Recorded recorded = read_recording(own.file("rank0.btr"));
    traces::join_recording(recorded.trace);
    // Kernels before it that the GPU had not begun yet have no launch, and so no group.
    std::vector<std::uint64_t> numbers;
    for (const traces::Collective& collective : recorded.trace.collectives) {
      if (collective.group_size == 8) numbers.push_back(collective.sequence);
    }
    ASSERT_GE(numbers.size(), 20U) << end.error;
    EXPECT_EQ(numbers.front(), 2000U);
    EXPECT_LT(numbers.back(), 2800U);
    EXPECT_EQ(recorded.trace.counters.count("capture_first_iteration_missed"), 0U);
  }
}

// A kernel every 5 ms; two signals a second apart, and the end.
TEST_F(Records, ASignalHasTheLastStretchWritten) {
  JobProcess job({"init", "traced", "rate:1400:5000"},
                 recording_to(folder, {{kEnvLast, "300ms"}, {kEnvSignal, "USR2"}}));
  const auto records_into = [&](const std::string& name) {
    for (int i = 0; i < 1000; ++i) {
      const auto status = job.status();
      if (status && status->state == RecorderState::kRecording &&
          status->output.find(name) != std::string::npos) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  };
  for (const char* name : {"signal-1", "signal-2"}) {
    ASSERT_TRUE(records_into(name));
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    ASSERT_EQ(::kill(job.pid(), SIGUSR2), 0);
  }
  end = job.wait();
  EXPECT_EQ(end.code, 0) << end.error;
  for (const char* name : {"signal-1", "signal-2", "signal-3"}) {
    const Recorded recorded = read_recording(folder.file(name) + "/rank0.btr");
    EXPECT_GT(recorded.kernels("kernel"), 10U) << name << end.error;
    EXPECT_LT(recorded.kernels("kernel"), 150U) << name;
  }
}

// CUPTI is on, and nothing has been recorded that could be written.
TEST_F(Records, ASignalBeforeTheFirstIterationDoesNothing) {
  JobProcess job({"init", "say:here", "hear", "mark_iterations:100:10"},
                 recording_to(folder, {{kEnvFirstIteration, "5"}, {kEnvSignal, "USR2"}}));
  ASSERT_TRUE(job.says("here"));
  (void)job.await(RecorderState::kRecording);
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ASSERT_EQ(::kill(job.pid(), SIGUSR2), 0);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  job.tell();
  end = job.wait();
  EXPECT_EQ(end.code, 0) << end.error;
  const Recorded recorded = read_recording(folder.file("signal-1") + "/rank0.btr");
  ASSERT_FALSE(recorded.trace.markers.empty()) << end.error;
  EXPECT_EQ(recorded.trace.markers.front().number, 5);
}

// While what the signal asked for is written.
TEST_F(Records, AStopRightAfterASignalEndsTheRecordings) {
  JobProcess job({"init", "traced", "rate:1600:5000"},
                 recording_to(folder, {{kEnvLast, "300ms"}, {kEnvSignal, "USR2"}}));
  (void)job.await(RecorderState::kRecording);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_EQ(::kill(job.pid(), SIGUSR2), 0);
  ASSERT_TRUE(job.stop());
  (void)job.await(RecorderState::kIdle);
}

TEST_F(Records, ASignalThatTheJobHandlesItselfIsRefused) {
  succeed({"signals:1", "init", "sleep:300"}, {{kEnvSignal, "USR1"}});
  EXPECT_NE(end.error.find("the job handles signal USR1 itself"), std::string::npos) << end.error;
}

// Two jobs are asked in the midst of their iterations, one later than the other.
TEST_F(Records, OfEveryManyIterationsThoseThatHavePassedAreLeftOut) {
  for (const int wait_ms : {300, 600}) {
    JobProcess job({"init", "say:begun", "mark_iterations:1900:2"}, {});
    ASSERT_TRUE(job.says("begun"));
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    ControlCommand start;
    start.kind = ControlCommand::Kind::kStart;
    start.start.output = folder.file(std::to_string(wait_ms));
    start.start.first_iteration = 0;
    start.start.iterations = 3;
    start.start.every = 1500;
    ASSERT_TRUE(job.command(start));
    end = job.wait();
    EXPECT_EQ(end.code, 0) << end.error;
    const Recorded recorded = read_recording(start.start.output + "/iterations-1500/rank0.btr");
    ASSERT_FALSE(recorded.trace.markers.empty()) << end.error;
    EXPECT_EQ(recorded.trace.markers.front().number, 1500);
    EXPECT_EQ(recorded.trace.counters.count("capture_first_iteration_missed"), 0U);
  }
}

TEST_F(Records, WithoutTheIterationThatWasAskedForThereIsNoFile) {
  succeed({"init", "sleep:200", "mark_iterations:20:10"}, {{kEnvFirstIteration, "2000000000"}});
  EXPECT_TRUE(folder.files().empty());
}

// A kernel every 5 ms for 1.5 s, of which the last 0.5 s are kept: some 100.
TEST_F(Records, TheLastStretchIsWrittenAtTheEnd) {
  const Recorded recorded = record({"init", "traced", "rate:300:5000"}, {{kEnvLast, "500ms"}});
  EXPECT_GT(recorded.kernels("kernel"), 20U);
  EXPECT_LT(recorded.kernels("kernel"), 110U);
  const TraceTime stop = recorded.trace.clocks.back().at;
  for (const auto& op : recorded.trace.device_ops) {
    EXPECT_GE(op.start, stop - std::chrono::milliseconds(500));
  }
  EXPECT_EQ(recorded.trace.counters.count("capture_held_records_dropped"), 0U);
}

TEST_F(Records, LightOnesHoldKernelsAlone) {
  const Recorded recorded = record({"init", "traced", "mixed:20", "nccl_graph:2"},
                                   {{kEnvDetail, "light"}});
  EXPECT_EQ(recorded.kernels("after"), 20U);
  EXPECT_EQ(recorded.trace.device_ops.size(), 24U);  // and 2 of the graph, twice
  EXPECT_TRUE(recorded.trace.host_calls.empty());
  EXPECT_TRUE(recorded.trace.memory.empty());
  EXPECT_TRUE(recorded.trace.provenance.note.starts_with("light: "));
}

// FNV-1a of "gemm", of 64 bits: the same on every rank.
TEST_F(Records, HashedNamesHideKernelsAndRangesButNotCollectivesAndIterations) {
  const Recorded recorded = record({"init", "traced", "nccl_graph:3", "mark_iterations:2:1"},
                                   {{kEnvNames, "hashed"}});
  EXPECT_EQ(recorded.kernels("gemm"), 0U);
  EXPECT_EQ(recorded.kernels("#673ff971efc12bc3"), 3U);
  EXPECT_EQ(recorded.kernels("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), 3U);
  EXPECT_EQ(recorded.markers(traces::MarkerKind::kIteration), 2U);
  EXPECT_EQ(recorded.trace.names[recorded.trace.markers[0].name], "iteration 0");
}

// Read twenty times a second: the step of 5 s is between two pairs that are not far apart.
TEST_F(Records, AClockThatIsSetIsWrittenDownAtOnce) {
  const Recorded recorded = record({"init", "traced", "rate:80:10000"},
                                   {{"FAKE_CUPTI", "step_ms=5000"}});
  int steps = 0;
  for (std::size_t i = 1; i < recorded.trace.clocks.size(); ++i) {
    const traces::ClockPair& before = recorded.trace.clocks[i - 1];
    const traces::ClockPair& after = recorded.trace.clocks[i];
    if (after.at - before.at < std::chrono::seconds(4)) continue;
    ++steps;
    EXPECT_LT(after.monotonic_ns - before.monotonic_ns, 500'000'000);
  }
  EXPECT_EQ(steps, 1);
}

// Both threads mark the same iterations.
TEST_F(Records, IterationsAreCountedOfOneThread) {
  const Recorded recorded = record({"init", "traced", "two_markers:40", "untraced"},
                                   {{kEnvIterations, "6"}});
  EXPECT_GE(recorded.markers(traces::MarkerKind::kIteration), 11U);
}

TEST_F(Records, TheRankIsThatOfTheJob) {
  succeed({"init", "traced", "launch:5"}, {{"RANK", "3"}, {"WORLD_SIZE", "8"}});
  const Recorded recorded = read_recording(folder.file("rank3.btr"));
  EXPECT_EQ(recorded.trace.rank, 3U);
  EXPECT_EQ(recorded.trace.world_size, 8U);
}

TEST_F(Records, WithoutNamesAndWithUnknownOnesInBetween) {
  const Recorded recorded = record({"init", "traced", "launch:100"},
                                   {{"FAKE_CUPTI", "null_names,unknown"}});
  EXPECT_EQ(recorded.trace.device_ops.size(), 100U);
  EXPECT_EQ(recorded.trace.counters.count("cupti_kernels_unnamed"), 100U);
  EXPECT_EQ(recorded.trace.counters.count("cupti_unknown_records_skipped"), 100U);
}

TEST_F(Records, ThatCuptiDroppedAreCounted) {
  run({"init", "traced", "launch:100"}, {{"FAKE_CUPTI", "drops=17"}});
  EXPECT_NE(end.error.find("lost: 17 records"), std::string::npos) << end.error;
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.trace.counters.count("capture_cupti_dropped"), 17U);
}

TEST_F(Records, OfMoreThreadsThanBuffersAreKeptOrCounted) {
  // 72 buffers at most; 100 threads want one each. Every kernel has a call: 100 * 50 * 2 records.
  const Recorded recorded = record({"init", "traced", "threads:100:50"});
  const std::uint64_t discarded = recorded.trace.counters.count("capture_records_discarded");
  EXPECT_EQ(recorded.kernels("threaded") + recorded.calls("cudaLaunchKernel") + discarded, 10000U);
}

TEST_F(Records, WithoutABufferLeftAreDiscardedAndCounted) {
  // CUPTI keeps all 72 buffers for good; those beyond are of 64 KiB.
  succeed({"init", "traced", "threads:100:5", "sleep:1200", "launch:10"},
          {{"FAKE_CUPTI", "keep_large"}});
  EXPECT_EQ(folder.files(), std::vector<std::string>{"rank0.btr"});
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  EXPECT_EQ(recorded.kernels("kernel"), 0U);
  EXPECT_GE(recorded.trace.counters.count("capture_records_discarded"), 20U);
}

TEST_F(Records, PrioritiesOfStreamsThatWereThereBefore) {
  // At the end the job's buffer comes back before the recorder's, which has the streams.
  const std::vector<std::string> verbs{"init", "traced", "sleep:100", "launch:10"};
  const Recorded recorded = record(verbs);
  ASSERT_FALSE(recorded.trace.streams.empty());
  EXPECT_EQ(recorded.trace.streams.front().priority, -5);
  EXPECT_EQ(recorded.trace.counters.count("cupti_stream_priorities_late"), 0U);
}

TEST_F(Records, OfAJobThatGoesOnEndWithTheStop) {
  // CUPTI keeps a buffer, so that the recording flushes again and again for a second at its end;
  // each flush takes the job's buffer. There are 72: they come back into use meanwhile.
  const Recorded recorded = record({"init", "traced", "rate:4000:500", "untraced"},
                                   {{kEnvDuration, "200ms"}, {"FAKE_CUPTI", "keep=1"}});
  EXPECT_EQ(recorded.trace.counters.count("capture_records_discarded"), 0U);
  EXPECT_GT(recorded.kernels("kernel"), 0U);
  EXPECT_GT(recorded.trace.counters.count("capture_records_after_stop"), 100U);
  const TraceTime stop = recorded.trace.clocks.back().at;
  for (const traces::HostCall& call : recorded.trace.host_calls) EXPECT_LE(call.start, stop);
}

TEST_F(Records, BuffersThatNeverComeBackDoNotHoldTheJobUp) {
  // The first is the recorder's own, with devices and streams; the others are two threads'.
  const Recorded recorded = record({"init", "traced", "threads:4:100", "sleep:700", "launch:10"},
                                   {{"FAKE_CUPTI", "keep=3"}});
  EXPECT_EQ(recorded.kernels("kernel"), 10U);
  EXPECT_EQ(recorded.kernels("threaded"), 200U);
}

TEST_F(Records, MemoryStaysBounded) {
  if (std::string(CAPTURE_SANITIZED) != "") GTEST_SKIP() << "sanitizers need memory of their own";
  succeed({"init", "traced", "threads:16:40000", "rss:200"});
}

}  // namespace
}  // namespace bubblesim::capture
