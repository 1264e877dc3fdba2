// Causality by counterfactuals: one thing changes, what depends on it moves by exactly what it
// should, and nothing else moves. Every operation's start and end is checked. Times in us.
#include <gtest/gtest.h>

#include <string>

#include "sim/workload/what_if.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

Spans with(const std::string& change, const program::Program& program) {
  JobProgram job;
  job.ranks.push_back(program);
  apply(*parse_what_if(change), job);
  return replayed(job.ranks.front());
}

/// Launches at 0, 100 and 200 (each 2 long), kernels of 20 that start 10 later: the device waits
/// for the host.
program::Program host_bound() {
  TraceBuilder job;
  for (const std::int64_t called : {0, 100, 200}) {
    job.kernel({called, called + 2, called + 10, called + 30});
  }
  return must_build(job.trace());
}

/// Launches at 0, 4 and 8 (each 2 long), kernels of 50, 60 and 40 with gaps of 2: the host waits
/// for nobody, the device has always more to do.
program::Program device_bound() {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 2, .start = 10, .end = 60, .name = "gemm"})
      .kernel({.called = 4, .returned = 6, .start = 62, .end = 122, .name = "layer_norm"})
      .kernel({.called = 8, .returned = 10, .start = 124, .end = 164, .name = "gemm"});
  return must_build(job.trace());
}

TEST(CausalityHostBound, Recorded) {
  EXPECT_EQ(replayed(host_bound()), (Spans{{10, 30}, {110, 130}, {210, 230}}));
}

// 80 longer, the first kernel ends at 110, as the second would start.
TEST(CausalityHostBound, AKernelThatIsLongerMovesNobodyUntilTheGapIsFull) {
  EXPECT_EQ(replayed_with_longer(host_bound(), 0, 79), (Spans{{10, 109}, {110, 130}, {210, 230}}));
  EXPECT_EQ(replayed_with_longer(host_bound(), 0, 80), (Spans{{10, 110}, {110, 130}, {210, 230}}));
}

// 180 longer, it ends at 210: the second runs until 230, and the third after it.
TEST(CausalityHostBound, BeyondTheGapEveryKernelBehindMoves) {
  EXPECT_EQ(replayed_with_longer(host_bound(), 0, 180), (Spans{{10, 210}, {210, 230}, {230, 250}}));
}

TEST(CausalityHostBound, FasterKernelsEndEarlierAndStartNoneEarlier) {
  EXPECT_EQ(with("kernels=4", host_bound()), (Spans{{10, 15}, {110, 115}, {210, 215}}));
}

// Calls of 2 and pauses of 98 halve: launches at 0, 50 and 100.
TEST(CausalityHostBound, AFasterHostMovesEveryLaunch) {
  EXPECT_EQ(with("host=2", host_bound()), (Spans{{10, 30}, {60, 80}, {110, 130}}));
}

// The pause before the second launch is 98; without it, it comes at 2, and waits for the first
// kernel's end at 30; the third comes at 102.
TEST(CausalityHostBound, AnIdleGapOfTheHostThatIsRemovedMovesWhatFollowsIt) {
  program::Program program = host_bound();
  program.threads[0].steps[2].think = {};
  EXPECT_EQ(replayed(program), (Spans{{10, 30}, {30, 50}, {112, 132}}));
}

// The host slower by half: pauses of 196, calls of 4.
TEST(CausalityHostBound, ASlowerHostMovesEveryLaunch) {
  EXPECT_EQ(with("host=0.5", host_bound()), (Spans{{10, 30}, {210, 230}, {410, 430}}));
}

TEST(CausalityDeviceBound, Recorded) {
  EXPECT_EQ(replayed(device_bound()), (Spans{{10, 60}, {62, 122}, {124, 164}}));
}

TEST(CausalityDeviceBound, EveryKernelBehindALongerOneMovesByAsMuch) {
  EXPECT_EQ(replayed_with_longer(device_bound(), 0, 7), (Spans{{10, 67}, {69, 129}, {131, 171}}));
  EXPECT_EQ(replayed_with_longer(device_bound(), 1, 7), (Spans{{10, 60}, {62, 129}, {131, 171}}));
}

// The kernels named gemm halve: 25 and 20. The other one starts 25 earlier, and lasts its 60.
TEST(CausalityDeviceBound, AFasterClassMovesWhatIsBehindIt) {
  const Spans expected{{10, 35}, {37, 97}, {99, 119}};
  EXPECT_EQ(with("compute=2", device_bound()), expected);
  EXPECT_EQ(with("kernel:gemm=2", device_bound()), expected);
  EXPECT_EQ(with("memory=2", device_bound()), (Spans{{10, 60}, {62, 92}, {94, 134}}));
}

TEST(CausalityDeviceBound, AFasterHostMovesNothing) {
  EXPECT_EQ(with("host=2", device_bound()), replayed(device_bound()));
}

// Launches at 0, 16 and 32 instead of 0, 4 and 8: still before the stream is free.
TEST(CausalityDeviceBound, ASlowerHostMovesNothingWhileTheDeviceIsBusy) {
  EXPECT_EQ(with("host=0.25", device_bound()), replayed(device_bound()));
}

// With pauses of 70, launches come at 0, 72 and 144. 10 later, at 82 and at 154, the kernels before
// have ended (60 + 2, 142 + 2).
TEST(CausalityDeviceBound, AHostThatIsSlowEnoughBindsTheDevice) {
  program::Program program = device_bound();
  for (std::size_t step : {2U, 3U}) program.threads[0].steps[step].think = short_us(70);
  EXPECT_EQ(replayed(program), (Spans{{10, 60}, {82, 142}, {154, 194}}));
}

/// Stream 0: A [10, 60], B [62, 122]. Stream 1: C waits for A (3 later), [63, 93]; D [95, 115].
/// A pause of the host until B's end is noticed at 127, then E on stream 0 at [140, 150].
TraceBuilder two_streams() {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 2, 10, 60}).kernel({4, 6, 62, 122}).kernel({8, 10, 63, 93, 1})
      .kernel({12, 14, 95, 115, 1}).stream_sync(16, 127).kernel({130, 132, 140, 150}).edge(0, 2);
  return job;
}

TEST(CausalityStreams, Recorded) {
  EXPECT_EQ(replayed(must_build(two_streams().trace())),
            (Spans{{10, 60}, {62, 122}, {63, 93}, {95, 115}, {140, 150}}));
}

// A longer by 5: its stream, the edge, the wait and what is launched after it.
TEST(CausalityStreams, AnEdgeCarriesADelayToTheOtherStream) {
  EXPECT_EQ(replayed_with_longer(must_build(two_streams().trace()), 0, 5),
            (Spans{{10, 65}, {67, 127}, {68, 98}, {100, 120}, {145, 155}}));
}

// B longer by 5: the other stream does not care.
TEST(CausalityStreams, WhatHasNoEdgeDoesNotMove) {
  EXPECT_EQ(replayed_with_longer(must_build(two_streams().trace()), 1, 5),
            (Spans{{10, 60}, {62, 127}, {63, 93}, {95, 115}, {145, 155}}));
}

// C longer by 500: D follows it; stream 0 and the host wait for neither.
TEST(CausalityStreams, AWaitForOneStreamIgnoresTheOther) {
  EXPECT_EQ(replayed_with_longer(must_build(two_streams().trace()), 2, 500),
            (Spans{{10, 60}, {62, 122}, {63, 593}, {595, 615}, {140, 150}}));
}

// A of 25: B from 37 to 97, C from 38 to 68, D from 70 to 90, the wait until 102, E 13 later.
TEST(CausalityStreams, AShorterKernelPullsEveryDependentForward) {
  EXPECT_EQ(replayed_with_longer(must_build(two_streams().trace()), 0, -25),
            (Spans{{10, 35}, {37, 97}, {38, 68}, {70, 90}, {115, 125}}));
}

/// Two ranks: a kernel, a collective, a kernel. Rank 0 computes until 60, rank 1 until 100; the
/// collective runs from 102 to 142 (rank 0's waits from 62 on); then kernels of 20.
std::vector<TraceBuilder> two_ranks() {
  std::vector<TraceBuilder> ranks;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::int64_t computed = rank == 0 ? 60 : 100;
    TraceBuilder trace(rank);
    trace.kernel({0, 2, 10, computed})
        .collective({.called = 4, .returned = 6, .start = computed + 2, .end = 142,
                     .name = "ncclAllReduce"}, {})
        .kernel({8, 10, 144, 164});
    ranks.push_back(trace);
  }
  return ranks;
}

std::vector<Spans> replayed(const JobProgram& job, const std::vector<Perturbation>& how = {}) {
  std::vector<Spans> result;
  for (const RunRecorder& run : run_once(job, how)) result.push_back(run.spans());
  return result;
}

std::vector<Spans> with(const std::string& change) {
  JobProgram job = must_build_job(two_ranks());
  apply(*parse_what_if(change), job);
  return replayed(job);
}

TEST(CausalityRanks, Recorded) {
  EXPECT_EQ(replayed(must_build_job(two_ranks())),
            (std::vector<Spans>{{{10, 60}, {62, 142}, {144, 164}},
                                {{10, 100}, {102, 142}, {144, 164}}}));
}

// Rank 0 has 40 of slack: 40 longer moves its collective's start only.
TEST(CausalityRanks, ARankWithinItsSlackMovesNobodyElse) {
  JobProgram job = must_build_job(two_ranks());
  job.ranks[0].ops[0].duration += us(40);
  EXPECT_EQ(replayed(job), (std::vector<Spans>{{{10, 100}, {102, 142}, {144, 164}},
                                               {{10, 100}, {102, 142}, {144, 164}}}));
  job.ranks[0].ops[0].duration += us(1);
  EXPECT_EQ(replayed(job), (std::vector<Spans>{{{10, 101}, {103, 143}, {145, 165}},
                                               {{10, 100}, {102, 143}, {145, 165}}}));
}

TEST(CausalityRanks, TheLateRanksDelayReachesTheOther) {
  JobProgram job = must_build_job(two_ranks());
  job.ranks[1].ops[0].duration += us(7);
  EXPECT_EQ(replayed(job), (std::vector<Spans>{{{10, 60}, {62, 149}, {151, 171}},
                                               {{10, 107}, {109, 149}, {151, 171}}}));
}

// Rank 1's kernels at double speed: 45 and 10. It arrives at 57, rank 0 at 62: 102.
TEST(CausalityRanks, WithOneRankFasterTheOtherBinds) {
  EXPECT_EQ(with("kernels@1=2"), (std::vector<Spans>{{{10, 60}, {62, 102}, {104, 124}},
                                                     {{10, 55}, {57, 102}, {104, 114}}}));
}

// The link at half speed: 40 become 80, from the meeting at 102.
TEST(CausalityRanks, ASlowerLinkLengthensWhatFollowsTheMeeting) {
  EXPECT_EQ(with("link=0.5"), (std::vector<Spans>{{{10, 60}, {62, 182}, {184, 204}},
                                                  {{10, 100}, {102, 182}, {184, 204}}}));
}

// One end of the link: rank 1's kernel ends later, rank 0's does not.
TEST(CausalityRanks, OneRanksSlowerLinkIsItsOwn) {
  EXPECT_EQ(with("link@1=0.5"), (std::vector<Spans>{{{10, 60}, {62, 142}, {144, 164}},
                                                    {{10, 100}, {102, 182}, {184, 204}}}));
}

// A straggler of 1.5 is rank 1: 135 and 30.
TEST(CausalityRanks, AStragglerHoldsTheOther) {
  EXPECT_EQ(replayed(must_build_job(two_ranks()), {{}, {.slowdown = 1.5}}),
            (std::vector<Spans>{{{10, 60}, {62, 187}, {189, 209}},
                                {{10, 145}, {147, 187}, {189, 219}}}));
}

}  // namespace
}  // namespace bubblesim::workload
