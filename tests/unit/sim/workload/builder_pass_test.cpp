// A pass that repeats takes the time that its recording says. Times in us.
#include <gtest/gtest.h>

#include "sim/workload/replay.hpp"
#include "sim/workload/what_if.hpp"
#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

/// The mean iteration of each rank, repeated.
std::vector<std::int64_t> repeated(const JobProgram& job) {
  const auto report = repeat_alone(job, plain_gpu());
  EXPECT_TRUE(report);
  std::vector<std::int64_t> result;
  for (const RankReplay& rank : report->ranks) result.push_back(microseconds(rank.simulated[0]));
  return result;
}
using Times = std::vector<std::int64_t>;

JobProgram with(JobProgram job, const char* change) {
  apply(*parse_what_if(change), job);
  return job;
}

/// Iterations of `host`, each with a kernel of `device` behind those before; the first is at 150.
TraceBuilder pipelined(std::int64_t host, std::int64_t device, std::uint32_t rank = 0) {
  TraceBuilder job(rank, 1, 2);
  for (int i = 0; i < 3; ++i) {
    job.iteration(host * i, host * (i + 1));
    job.kernel({host * i, host * i + 2, 150 + device * i, 150 + device * (i + 1)});
  }
  return job;
}

// Iterations of 1000 with a kernel; another thread launches B each 130, for 100, and waits for it.
// At half the speed B needs 230 of 130, and lags by itself: nothing of the iteration waits for it.
TEST(BuilderPass, AThreadApartDoesNotPaceTheIteration) {
  TraceBuilder job(0, 2, 2);
  for (int at = 0; at < 4000; at += 1000) {
    job.iteration(at, at + 1000).kernel({at + 10, at + 12, at + 15, at + 25})
        .stream_sync(at + 13, at + 27);
  }
  for (int at = 5; at < 3900; at += 130) {
    job.kernel({.called = at, .returned = at + 2, .start = at + 5, .end = at + 105, .stream = 1,
                .thread = 1, .name = "B"})
        .call(HostCallKind::kStreamSync,
              {.start = at + 3, .end = at + 107, .thread = 1, .stream = 1});
  }
  const JobProgram program = must_build_job({job}, Window::kIterations);
  EXPECT_EQ(repeated(program), Times{1000});
  EXPECT_EQ(repeated(with(program, "kernel:B=0.5")), Times{1000});
}

// The host needs 60, the device 100: it sets the pace, and so it does with kernels at double speed,
// until the host is the slower one.
TEST(BuilderPass, TheDeviceSetsThePaceOfAHostThatRunsAhead) {
  const JobProgram job = must_build_job({pipelined(60, 100)}, Window::kIterations);
  EXPECT_EQ(repeated(job), Times{100});
  EXPECT_EQ(repeated(with(job, "kernels=0.5")), Times{200});
  EXPECT_EQ(repeated(with(job, "host=2")), Times{100});
}

// Behind each kernel of 100, on another stream, a prefetch for the next iteration starts 3 after
// it: in the pass of iterations 1 and 2, that of the first waits for the second's kernel in the
// pass before. Kernels 20 longer move it with them.
TEST(BuilderPass, AnEdgeFromTheIterationBeforeItWaitsForThePassBefore) {
  TraceBuilder recording(0, 1, 2);
  for (int i = 0; i < 3; ++i) {
    const int host = 100 * i;
    recording.iteration(host, host + 100).kernel({host + 1, host + 2, host + 153, host + 163, 1})
        .kernel({host + 3, host + 4, host + 150, host + 250});
    if (i > 0) recording.edge(static_cast<std::uint32_t>(2 * i - 1),
                              static_cast<std::uint32_t>(2 * i));
  }
  JobProgram job = must_build_job({recording}, Window::kIterations);
  program::Program& rank = job.ranks[0];
  ASSERT_EQ(rank.ops.size(), 4U);  // prefetch, kernel, prefetch, kernel
  ASSERT_EQ(rank.edges.size(), 2U);
  EXPECT_EQ(rank.edges[rank.ops[0].first_edge].before, 3U);
  EXPECT_EQ(rank.edges[rank.ops[0].first_edge].passes_back, 1U);
  EXPECT_EQ(rank.edges[rank.ops[2].first_edge].before, 1U);
  EXPECT_EQ(rank.edges[rank.ops[2].first_edge].passes_back, 0U);
  EXPECT_EQ(repeated(job), Times{100});
  for (program::Op& op : rank.ops) op.duration += op.stream == 0 ? us(20) : us(0);
  std::vector<RunRecorder> recorders(1);
  const hardware::GpuSpec gpu = plain_gpu();
  LoneJob lone(job, gpu, {Repeat::kLoop, 3, {}}, pointers_to(recorders));
  lone.run();
  const auto& passes = recorders[0].passes;
  EXPECT_EQ(passes[0].at(1).start, passes[3].at(0).end + 3);
  EXPECT_EQ(passes[0].at(2).start, passes[3].at(1).end + 3);
}

// The operation that is waited for is of an iteration before the pass, and another kernel is in its
// place there: nothing is known of when it repeats.
TEST(BuilderPass, AnEdgeWhoseOperationDoesNotRepeatIsCounted) {
  TraceBuilder recording = pipelined(100, 100);
  recording.kernel({.called = 5, .returned = 6, .start = 120, .end = 140, .stream = 1,
                    .name = "once"});
  recording.kernel({105, 106, 260, 270, 1}).kernel({205, 206, 360, 370, 1});
  recording.edge(3, 1);
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_TRUE(job.ranks[0].edges.empty());
  EXPECT_EQ(job.ranks[0].counters.count("program_edges_from_outside"), 1U);
}

// The host needs 100, the device 40.
TEST(BuilderPass, TheHostSetsThePaceOfADeviceThatWaitsForIt) {
  TraceBuilder recording;
  for (int i = 0; i < 3; ++i) {
    recording.iteration(100 * i, 100 * (i + 1));
    recording.kernel({100 * i, 100 * i + 2, 100 * i + 5, 100 * i + 45});
  }
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_EQ(repeated(job), Times{100});
  EXPECT_EQ(repeated(with(job, "kernels=2")), Times{100});
  EXPECT_EQ(repeated(with(job, "host=2")), Times{50});
  EXPECT_EQ(repeated(with(job, "kernels=0.25")), Times{160});  // and the host runs ahead
}

// Four kernels of 90, 10 apart, and no call: the device alone sets the pace.
TEST(BuilderPass, AHostThatWasNotRecordedWaitsForTheDevice) {
  TraceBuilder recording;
  for (int i = 0; i < 4; ++i) recording.orphan({.start = 100 * i, .end = 100 * i + 90});
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_EQ(repeated(job), Times{390});
  EXPECT_EQ(repeated(with(job, "kernels=0.5")), Times{750});
  EXPECT_EQ(repeated(with(job, "kernels=2")), Times{210});
  EXPECT_EQ(repeated(with(job, "host=2")), Times{390});
}

// Recorded: [0, 101] waits for unrecorded work, then a kernel of 20 and a wait for it, to 126. Of a
// pass are the copy and its wait (4), 2 to the next call, 3 to the kernel's start, 20 of it.
TEST(BuilderPass, AWaitForWorkFromBeforeTheWindowIsNotRepeated) {
  TraceBuilder recording;
  recording.copy({0, 1, 100, 101}).stream_sync(1, 101).kernel({103, 105, 106, 126})
      .stream_sync(106, 126);
  EXPECT_EQ(repeated(must_build_job({recording}, Window::kIterations)), Times{29});
}

// Three kernels were queued before the window: they are not part of a pass, however long they are.
TEST(BuilderPass, WorkQueuedBeforeTheWindowIsNotRepeated) {
  TraceBuilder recording = pipelined(100, 100);
  for (int i = 0; i < 3; ++i) recording.orphan({.start = 50 * i, .end = 50 * (i + 1)});
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_EQ(job.ranks[0].ops.size(), 2U);
  EXPECT_EQ(repeated(job), Times{100});
}

// The only call returns at 10, before what runs on the device, which nothing launched.
TEST(BuilderPass, WorkAfterTheLastCallOfAnUnmarkedRecordingIsRepeated) {
  TraceBuilder recording;
  recording.call(HostCallKind::kDeviceSync, {0, 10}).orphan({.start = 100, .end = 190})
      .orphan({.start = 200, .end = 290});
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_EQ(job.ranks[0].ops.size(), 2U);
}

// Each iteration begins with a wait for the device's work of the one before: 30 of host time, 70 of
// kernel. A kernel twice as fast shortens the wait.
TEST(BuilderPass, AWaitForThePassBeforeIsKept) {
  TraceBuilder recording;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = 100 * i;
    recording.iteration(at, at + 100).stream_sync(at, at + 10)
        .kernel({at + 38, at + 40, at + 40, at + 110});
  }
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_EQ(repeated(job), Times{100});
  EXPECT_EQ(repeated(with(job, "kernels=0.5")), Times{170});
}

// Kernels start 15 before their launch calls: the host's clock is that far ahead. As it stands each
// would start late by 15, and the host wait for it.
TEST(BuilderPass, AHostClockAheadOfTheDevicesIsSetBack) {
  TraceBuilder recording;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t at = 100 * i;
    recording.iteration(at, at + 100).kernel({at + 20, at + 22, at + 5, at + 75})
        .stream_sync(at + 30, at + 95);
  }
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_EQ(job.counters.count("program_host_clocks_moved"), 1U);
  EXPECT_EQ(job.counters.count("program_host_clocks_moved_ns"), 15'000U);
  EXPECT_EQ(job.counters.count("program_backward_times"), 0U);
  EXPECT_EQ(repeated(job), Times{100});
}

// Of 120 kernels the first of each iteration's 30 starts 4 before its launch; the others, of 90,
// queue. Waits return 9 after the last one's end (2716), as a host's clock that is 4 ahead allows.
TEST(BuilderPass, OperationsThatQueuedSayNothingOfTheClocks) {
  TraceBuilder recording;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = 3000 * i;
    recording.iteration(at, at + 3000);
    for (int k = 0; k < 30; ++k) {
      const std::int64_t start = at + 6 + 90 * k + (k > 0 ? 10 : 0);
      recording.kernel({at + 10 + 2 * k, at + 11 + 2 * k, start, start + (k > 0 ? 90 : 100)});
    }
    recording.stream_sync(at + 80, at + 2725);
  }
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_EQ(job.counters.count("program_host_clocks_moved_ns"), 4'000U);
  EXPECT_EQ(repeated(job), Times{3000});
}

// Kernels of 80 start 8 after their launches; each wait returns 3 before the kernel's recorded end:
// the host's clock is 3 behind. A pass is 100: launch lag 5, kernel 80, 15 to the next launch; with
// kernels twice as fast 60.
TEST(BuilderPass, WaitsThatReturnBeforeTheEndByTheClocksOffsetAreWaits) {
  TraceBuilder recording;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = 100 * i;
    recording.iteration(at, at + 100).kernel({at, at + 2, at + 8, at + 88})
        .stream_sync(at + 7, at + 85);
  }
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_EQ(job.counters.count("program_host_clocks_moved_ns"), 3'000U);
  EXPECT_EQ(job.counters.count("program_waits_before_end"), 0U);
  EXPECT_EQ(repeated(job), Times{100});
  EXPECT_EQ(repeated(with(job, "kernels=2")), Times{60});
}

// As above, but one of four waits returns 40 before the end, where the launches allow 8: it is no
// wait.
TEST(BuilderPass, AWaitThatReturnsBeforeTheEndByMoreThanClocksExplainIsALoss) {
  TraceBuilder recording;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = 100 * i;
    recording.iteration(at, at + 100).kernel({at, at + 2, at + 8, at + 88})
        .stream_sync(at + 7, at + (i == 2 ? 48 : 91));
  }
  const JobProgram job = must_build_job({recording}, Window::kIterations);
  EXPECT_EQ(job.counters.count("program_host_clocks_moved"), 0U);
  EXPECT_EQ(job.counters.count("program_waits_before_end"), 1U);
}

TEST(BuilderPass, IterationsAndTheReasonForThemAreTold) {
  const JobProgram job = must_build_job({pipelined(60, 100)}, Window::kIterations);
  EXPECT_EQ(job.iterations_recorded, 3U);
  EXPECT_EQ(job.iterations_used, 2U);
  EXPECT_EQ(job.iterations_text, "3 recorded, 2 used (1 to 2); left out: 0 (the window's first)");
}

// Rank 0's device needs 100 an iteration, rank 1's 120; they meet in collectives.
TEST(BuilderPass, RanksThatMeetRepeatAtTheSlowestOnesPace) {
  std::vector<TraceBuilder> ranks;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    TraceBuilder recording(rank);
    const std::int64_t own = rank == 0 ? 80 : 100;
    for (int i = 0; i < 3; ++i) {
      const std::int64_t at = 120 * i;
      recording.iteration(at, at + 120).kernel({at, at + 1, at + 5, at + 5 + own});
      recording.collective({at + 2, at + 3, at + 5 + own, at + 115},
                           {.sequence = static_cast<std::uint64_t>(i)});
      recording.stream_sync(at + 4, at + 116);
    }
    ranks.push_back(recording);
  }
  const JobProgram job = must_build_job(ranks, Window::kIterations);
  EXPECT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(repeated(job), (Times{120, 120}));
  EXPECT_EQ(repeated(with(job, "kernels@0=0.5")), (Times{180, 180}));  // from 165 on, not 105
}

}  // namespace
}  // namespace bubblesim::workload
