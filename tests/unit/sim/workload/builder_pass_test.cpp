// A pass that repeats takes the time that its recording says. Times in us.
#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

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

/// `count` iterations of `length`, each with what `add` adds to it at its begin.
template <class Add>
TraceBuilder iterations(int count, std::int64_t length, const Add& add) {
  TraceBuilder job;
  for (int i = 0; i < count; ++i) {
    job.iteration(length * i, length * (i + 1));
    add(job, length * i);
  }
  return job;
}

/// Two threads: iterations of 1000 with a kernel; another thread launches B each 130, for 100, and
/// waits for it.
TraceBuilder thread_apart() {
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
  return job;
}

/// Of 120 kernels the first of each iteration's 30 starts 4 before its launch; the others, of 90,
/// queue. Waits return 9 after the last one's end (2716).
TraceBuilder deep_queues() {
  return iterations(4, 3000, [](TraceBuilder& job, std::int64_t at) {
    for (int k = 0; k < 30; ++k) {
      const std::int64_t start = at + 6 + 90 * k + (k > 0 ? 10 : 0);
      job.kernel({at + 10 + 2 * k, at + 11 + 2 * k, start, start + (k > 0 ? 90 : 100)});
    }
    job.stream_sync(at + 80, at + 2725);
  });
}

/// Kernels of 80 start 8 after their launches; each wait returns at `returned`, the third at
/// `third`, of its iteration.
TraceBuilder waits_that_return(std::int64_t returned, std::int64_t third) {
  return iterations(4, 100, [=](TraceBuilder& job, std::int64_t at) {
    job.kernel({at, at + 2, at + 8, at + 88})
        .stream_sync(at + 7, at + (at == 200 ? third : returned));
  });
}

/// A recording, its iteration repeated, and that with changes.
struct Repeated {
  std::string_view name;
  TraceBuilder recording;
  std::optional<std::int64_t> iteration;
  std::vector<std::pair<const char*, std::int64_t>> changed{};
  std::vector<std::pair<std::string_view, std::uint64_t>> counters{};
  std::optional<std::size_t> ops{};  ///< of a pass
};

TEST(BuilderPass, RepeatsAtThePaceOfWhatBindsIt) {
  TraceBuilder orphans;
  for (int i = 0; i < 4; ++i) orphans.orphan({.start = 100 * i, .end = 100 * i + 90});
  TraceBuilder queued = pipelined(100, 100);
  for (int i = 0; i < 3; ++i) queued.orphan({.start = 50 * i, .end = 50 * (i + 1)});
  for (const Repeated& row : std::vector<Repeated>{
           // At half the speed B needs 230 of 130, and lags by itself: nothing of the iteration
           // waits for it.
           {"a thread apart does not pace the iteration", thread_apart(), 1000,
            {{"kernel:B=0.5", 1000}}},
           // The host needs 60, the device 100: it sets the pace, and so it does with kernels at
           // double speed, until the host is the slower one.
           {"the device sets the pace of a host that runs ahead", pipelined(60, 100), 100,
            {{"kernels=0.5", 200}, {"host=2", 100}}},
           // The host needs 100, the device 40; kernels of 160 make the host run ahead.
           {"the host sets the pace of a device that waits for it",
            iterations(3, 100, [](TraceBuilder& job, std::int64_t at) {
              job.kernel({at, at + 2, at + 5, at + 45});
            }), 100, {{"kernels=2", 100}, {"host=2", 50}, {"kernels=0.25", 160}}},
           // Four kernels of 90, 10 apart, and no call: the device alone sets the pace.
           {"a host that was not recorded waits for the device", orphans, 390,
            {{"kernels=0.5", 750}, {"kernels=2", 210}, {"host=2", 390}}},
           // Recorded: [0, 101] waits for unrecorded work, then a kernel of 20 and a wait for it,
           // to 126. Of a pass are the copy and its wait (4), 2 to the next call, 3 to the kernel's
           // start, 20 of it.
           {"a wait for work from before the window is not repeated",
            TraceBuilder().copy({0, 1, 100, 101}).stream_sync(1, 101).kernel({103, 105, 106, 126})
                .stream_sync(106, 126), 29},
           // Three kernels were queued before the window: they are not part of a pass, however long
           // they are.
           {"work queued before the window is not repeated", queued, 100, {}, {}, 2},
           // The only call returns at 10, before what runs on the device, which nothing launched.
           {"work after the last call of an unmarked recording is repeated",
            TraceBuilder().call(HostCallKind::kDeviceSync, {0, 10})
                .orphan({.start = 100, .end = 190}).orphan({.start = 200, .end = 290}), {}, {}, {},
            2},
           // Each iteration begins with a wait for the device's work of the one before: 30 of host
           // time, 70 of kernel. A kernel twice as fast shortens the wait.
           {"a wait for the pass before is kept",
            iterations(4, 100, [](TraceBuilder& job, std::int64_t at) {
              job.stream_sync(at, at + 10).kernel({at + 38, at + 40, at + 40, at + 110});
            }), 100, {{"kernels=0.5", 170}}},
           // Kernels start 15 before their launch calls: the host's clock is that far ahead. As it
           // stands each would start late by 15, and the host wait for it.
           {"a host clock ahead of the device's is set back",
            iterations(3, 100, [](TraceBuilder& job, std::int64_t at) {
              job.kernel({at + 20, at + 22, at + 5, at + 75}).stream_sync(at + 30, at + 95);
            }), 100, {},
            {{"program_host_clocks_moved", 1}, {"program_host_clocks_moved_ns", 15'000},
             {"program_backward_times", 0}}},
           // As a host's clock that is 4 ahead allows.
           {"operations that queued say nothing of the clocks", deep_queues(), 3000, {},
            {{"program_host_clocks_moved_ns", 4'000}}},
           // Waits return 3 before the kernel's recorded end: the host's clock is 3 behind. A pass
           // is 100: launch lag 5, kernel 80, 15 to the next launch; twice as fast 60.
           {"waits that return before the end by the clocks' offset are waits",
            waits_that_return(85, 85), 100, {{"kernels=2", 60}},
            {{"program_host_clocks_moved_ns", 3'000}, {"program_waits_before_end", 0}}},
           // One of four returns 40 before the end, where the launches allow 8: it is no wait.
           {"a wait that returns before the end by more than clocks explain is a loss",
            waits_that_return(91, 48), {}, {},
            {{"program_host_clocks_moved", 0}, {"program_waits_before_end", 1}}}}) {
    SCOPED_TRACE(row.name);
    const JobProgram job = must_build_job({row.recording}, Window::kIterations);
    for (const auto& [name, count] : row.counters) EXPECT_EQ(job.counters.count(name), count);
    if (row.ops) {
      EXPECT_EQ(job.ranks[0].ops.size(), *row.ops);
    }
    if (row.iteration) {
      EXPECT_EQ(repeated(job), Times{*row.iteration});
    }
    for (const auto& [change, time] : row.changed) {
      EXPECT_EQ(repeated(with(job, change)), Times{time}) << change;
    }
  }
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
