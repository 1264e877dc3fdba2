// Which iterations count, which device work is theirs, and how long they take. Times in us.
#include "traces/iterations/job_pass.hpp"

#include <gtest/gtest.h>

#include "tests/fault.hpp"
#include "tests/unit/sim/workload/trace_builder.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::traces {
namespace {

using workload::TraceBuilder;

Duration us(std::int64_t count) { return std::chrono::microseconds{count}; }

std::int64_t in_us(Duration span) { return span.count() / 1000; }

/// One kernel of 10 an iteration, launched at its start, 5 before it runs.
TraceBuilder& launch_at(TraceBuilder& job, std::int64_t at) {
  return job.kernel({at, at + 2, at + 5, at + 15});
}

RankPass pass_of(const TraceBuilder& job, const char* choice = "settled") {
  return must(find_rank_pass(job.trace(), *parse_iteration_choice(choice)));
}

std::vector<IterationUse> uses(const RankPass& pass) {
  std::vector<IterationUse> result;
  for (const RecordedIteration& iteration : pass.recorded) result.push_back(iteration.use);
  return result;
}
using Uses = std::vector<IterationUse>;
using enum IterationUse;

/// Iterations of 100 from 0 on, a kernel each.
TraceBuilder iterations(int count) {
  TraceBuilder job;
  for (int i = 0; i < count; ++i) {
    job.iteration(100 * i, 100 * (i + 1));
    launch_at(job, 100 * i);
  }
  return job;
}

TEST(JobPass, TheFirstOfSeveralIterationsIsLeftOut) {
  const RankPass pass = pass_of(iterations(4));
  EXPECT_EQ(uses(pass), (Uses{kFirst, kUsed, kUsed, kUsed}));
  EXPECT_EQ(pass.first, 1U);
  EXPECT_EQ(pass.count, 3U);
  EXPECT_EQ(pass.length, us(300));
  EXPECT_EQ(pass.iteration_time(), us(100));
}

TEST(JobPass, TheOnlyIterationIsUsed) { EXPECT_EQ(uses(pass_of(iterations(1))), Uses{kUsed}); }

TEST(JobPass, AChoiceIsFollowed) {
  EXPECT_EQ(uses(pass_of(iterations(3), "all")), (Uses{kUsed, kUsed, kUsed}));
  EXPECT_EQ(uses(pass_of(iterations(3), "0-1")), (Uses{kUsed, kUsed, kNotChosen}));
  EXPECT_EQ(error_of(find_rank_pass(iterations(3).trace(), *parse_iteration_choice("7"))).message,
            "found no iteration 7 on all ranks; recorded are 0 to 2");
}

// Cutting what lies before the first marker, idle or not, changes nothing.
TEST(JobPass, WhatLiesBeforeTheFirstMarkerDoesNotCount) {
  TraceBuilder job = iterations(3);
  launch_at(job, -400);
  const RankPass pass = pass_of(job);
  EXPECT_EQ(pass.length, pass_of(iterations(3)).length);
  EXPECT_EQ(pass.counters.count("iteration_ops_outside"), 1U);
}

// Iteration 2 of 5 frees and allocates 4 times, 20 of its 100; the others once, 1 each.
TEST(JobPass, AnAllocationStormIsLeftOutAndTheLongestRunOfNeighboursKept) {
  TraceBuilder job = iterations(5);
  for (int i = 0; i < 5; ++i) job.call(HostCallKind::kAlloc, {100 * i + 20, 100 * i + 21});
  for (int i = 0; i < 4; ++i) job.call(HostCallKind::kFree, {230 + 10 * i, 235 + 10 * i});
  EXPECT_EQ(uses(pass_of(job)), (Uses{kFirst, kApart, kAllocations, kUsed, kUsed}));
}

// The same four frees in every iteration are how the job is.
TEST(JobPass, AllocationsOfEveryIterationAreNoStorm) {
  TraceBuilder job = iterations(3);
  for (int i = 0; i < 12; ++i) {
    const std::int64_t at = 100 * (i / 4) + 20 + 10 * (i % 4);
    job.call(HostCallKind::kFree, {at, at + 5});
  }
  EXPECT_EQ(uses(pass_of(job)), (Uses{kFirst, kUsed, kUsed}));
}

// The second iteration tries a kernel of 4 that no later one launches, beside its 10: 28 %.
TEST(JobPass, KernelsThatOnlyAnEarlyIterationLaunchesAreAutotuning) {
  TraceBuilder job = iterations(4);
  job.kernel({.called = 130, .returned = 132, .start = 135, .end = 139, .name = "tried"});
  EXPECT_EQ(uses(pass_of(job)), (Uses{kFirst, kNewKernels, kUsed, kUsed}));
}

// Compilation: the first two of five iterations take 1000, the others 100.
TEST(JobPass, AStartFarSlowerThanWhatFollowsIsLeftOut) {
  TraceBuilder job;
  std::int64_t begin = 0;
  for (const std::int64_t length : {1000, 1000, 100, 100, 130}) {
    job.iteration(begin, begin + length);
    launch_at(job, begin);
    begin += length;
  }
  EXPECT_EQ(uses(pass_of(job)), (Uses{kFirst, kSlowStart, kUsed, kUsed, kUsed}));
}

// Of a trace that a simulation wrote, iterations differ because the job's do.
TEST(JobPass, AMadeTraceHasNoWarmUpButItsFirstIteration) {
  TraceBuilder job;
  for (const std::int64_t begin : {0, 1000, 2000}) {
    job.iteration(begin, begin + (begin < 2000 ? 1000 : 100));
    launch_at(job, begin);
  }
  RankTrace trace = job.trace();
  EXPECT_EQ(uses(*find_rank_pass(trace)), (Uses{kFirst, kSlowStart, kUsed}));
  trace.provenance.format = kMadeFormat;
  EXPECT_EQ(uses(*find_rank_pass(trace)), (Uses{kFirst, kUsed, kUsed}));
}

// Three kernels in each but the last, which has one: the window closed before the others ran.
TEST(JobPass, AnIterationWithoutHalfItsDeviceWorkIsCut) {
  TraceBuilder job = iterations(4);
  for (int i = 0; i < 6; ++i) launch_at(job, 100 * (i / 2) + 30 + 20 * (i % 2));
  EXPECT_EQ(uses(pass_of(job)), (Uses{kFirst, kUsed, kUsed, kFewOperations}));
}

TEST(JobPass, AnIterationIsUsedIfEveryRankRecordedIt) {
  JobTrace job;
  job.ranks = {iterations(4).trace(), iterations(3).trace()};
  const auto pass = must(find_job_pass(job));
  EXPECT_EQ(uses(pass.ranks[0]), (Uses{kFirst, kUsed, kUsed, kNotOnAllRanks}));
  EXPECT_EQ(uses(pass.ranks[1]), (Uses{kFirst, kUsed, kUsed}));
  EXPECT_EQ(pass.text(),
            "4 recorded, 2 used (1 to 2); left out: 0 (the window's first), 3 (not recorded on "
            "all ranks)");
}

/// Iterations of 100 from `begin` on, a kernel each, with these numbers.
TraceBuilder numbered(const std::vector<std::int64_t>& numbers, std::int64_t begin = 0) {
  TraceBuilder job;
  for (const std::int64_t number : numbers) {
    job.iteration(begin, begin + 100, 0, number);
    launch_at(job, begin);
    begin += 100;
  }
  return job;
}

struct Renumbered {
  std::vector<std::int64_t> numbers;
  std::uint64_t started_again;
};
const std::vector<Renumbered> kRenumbered{
    {{0, 1, 2, 3, 0, 1}, 1}, {{5, 4, 3, 2, 1, 0}, 5}, {{4, 4, 4, 4, 4, 4}, 5}};

TEST(JobPass, NumbersThatStartAgainChangeNothingElse) {
  for (const auto& [numbers, started_again] : kRenumbered) {
    const RankPass pass = pass_of(numbered(numbers));
    EXPECT_EQ(uses(pass), (Uses{kFirst, kUsed, kUsed, kUsed, kUsed, kUsed}));
    EXPECT_EQ(pass.first, 1U);
    EXPECT_EQ(pass.length, us(500));
    EXPECT_EQ(pass.counters.count("iteration_numbers_start_again"), started_again);
    const RankPass all = pass_of(numbered(numbers), "all");
    EXPECT_EQ(all.count, 6U);
    EXPECT_EQ(all.length, us(600));
  }
}

TEST(JobPass, NumbersThatStartAgainOnAllRanksAreJoinedEpochByEpoch) {
  for (const auto& [numbers, started_again] : kRenumbered) {
    const RankTrace trace = numbered(numbers).trace();
    const auto pass = must(find_job_pass(JobTrace{{trace, trace}}));
    for (const RankPass& rank : pass.ranks) {
      EXPECT_EQ(uses(rank), (Uses{kFirst, kUsed, kUsed, kUsed, kUsed, kUsed}));
      EXPECT_EQ(rank.length, us(500));
    }
  }
}

// The other rank's window opens an iteration later, and so misses an epoch of one iteration.
TEST(JobPass, ARankThatMissesAnEpochIsJoinedToTheOthersNext) {
  for (const std::vector<std::int64_t>& numbers :
       {std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}, {3, 0, 1, 2, 3, 0}, {5, 4, 3, 2, 1, 0}}) {
    const RankTrace early = numbered(numbers).trace();
    const RankTrace late = numbered({numbers.begin() + 1, numbers.end()}, 100).trace();
    for (const bool late_first : {false, true}) {
      JobTrace job{{early, late}};
      if (late_first) std::swap(job.ranks[0], job.ranks[1]);
      const auto pass = must(find_job_pass(job));
      EXPECT_EQ(uses(pass.ranks[late_first ? 1 : 0]),
                (Uses{kNotOnAllRanks, kFirst, kUsed, kUsed, kUsed, kUsed}));
      EXPECT_EQ(uses(pass.ranks[late_first ? 0 : 1]), (Uses{kFirst, kUsed, kUsed, kUsed, kUsed}));
      EXPECT_EQ(pass.iteration_time(), us(100));
    }
  }
}

// The other rank shares its first iteration with the early one's second epoch, or its last with the
// early one's first: one each, so that its window is taken to have opened later.
TEST(JobPass, OfEpochsThatFitEquallyTheLaterOneIsTaken) {
  JobTrace job{{numbered({3, 2}).trace(), numbered({2, 5, 3}, 100).trace()}};
  const auto pass = must(find_job_pass(job, *parse_iteration_choice("all")));
  EXPECT_EQ(uses(pass.ranks[0]), (Uses{kNotOnAllRanks, kUsed}));
  EXPECT_EQ(uses(pass.ranks[1]), (Uses{kUsed, kNotOnAllRanks, kNotOnAllRanks}));
}

TEST(JobPass, ANumberOfSeveralIterationsChoosesAllAndTheLastOfEqualRunsIsUsed) {
  const TraceBuilder job = numbered({0, 1, 2, 0, 1, 2});
  EXPECT_EQ(uses(pass_of(job, "1")),
            (Uses{kNotChosen, kApart, kNotChosen, kNotChosen, kUsed, kNotChosen}));
  EXPECT_EQ(pass_of(job, "0-2").count, 6U);
  EXPECT_EQ(error_of(find_rank_pass(job.trace(), *parse_iteration_choice("7"))).message,
            "found no iteration 7 on all ranks; recorded are 0 to 2");
}

/// The device is 150 behind the host: the kernels of [0, 100], [100, 200], [200, 300] run from 150,
/// 250, 350, a hundred each; before them, one that was queued before the window.
TraceBuilder behind() {
  TraceBuilder job;
  job.orphan({.start = 0, .end = 150});
  for (int i = 0; i < 3; ++i) {
    job.iteration(100 * i, 100 * (i + 1));
    job.kernel({100 * i, 100 * i + 2, 150 + 100 * i, 250 + 100 * i});
  }
  return job;
}

TEST(JobPass, WorkQueuedBeforeTheWindowBelongsToNoIteration) {
  const RankPass pass = pass_of(behind());
  EXPECT_EQ(pass.iteration_of, (std::vector<std::uint32_t>{kNone, 0, 1, 2}));
  EXPECT_EQ(pass.counters.count("iteration_ops_queued_before"), 1U);
  EXPECT_EQ(pass.length, us(200));  // of iterations 1 and 2, from 250 to 450 on the device
}

// The host's 300 us have three kernels of 100; what ran in the first 150 is in no pass.
TEST(JobPass, APassThatBeginsWithTheRecordingLacksWhatWasQueuedBefore) {
  EXPECT_EQ(pass_of(behind(), "all").counters.count("iteration_queue_cut"), 1U);
  EXPECT_EQ(pass_of(behind()).counters.count("iteration_queue_cut"), 0U);  // of 1 and 2
  TraceBuilder barely;  // 1 us queued, of 300
  barely.orphan({.start = 0, .end = 1});
  for (int i = 0; i < 3; ++i) {
    barely.iteration(100 * i, 100 * (i + 1));
    barely.kernel({100 * i, 100 * i + 2, 5 + 100 * i, 95 + 100 * i});
  }
  EXPECT_EQ(pass_of(barely, "all").counters.count("iteration_queue_cut"), 0U);
}

// A cut of a job that repeats: kernels of 100 us, back to back from 0 to 500; two were queued
// before, and two launches at the end have no kernel. The pass has all five, the first two at its
// end.
TraceBuilder cut_out(int launches_at_the_end) {
  TraceBuilder job;
  job.orphan({.start = 0, .end = 100}).orphan({.start = 100, .end = 200});
  for (int i = 0; i < 3; ++i) {
    job.kernel({10 + 100 * i, 12 + 100 * i, 200 + 100 * i, 300 + 100 * i});
  }
  for (int i = 0; i < launches_at_the_end; ++i) {
    job.call(HostCallKind::kLaunchKernel, {310 + 100 * i, 312 + 100 * i});
  }
  return job;
}

TEST(JobPass, AsMuchAsWasQueuedBeforeTheRecordingIsQueuedAtItsEnd) {
  const TraceBuilder job = cut_out(2);
  const RankPass pass = pass_of(job);
  EXPECT_EQ(pass.length, us(500));
  EXPECT_EQ(pass.iteration_of, (std::vector<std::uint32_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(pass.later(0), us(500));
  EXPECT_EQ(pass.later(2), us(0));
  EXPECT_EQ(pass.counters.count("iteration_queue_kept"), 2U);
  EXPECT_EQ(pass.counters.count("iteration_ops_queued_before"), 0U);
  EXPECT_EQ(pass.counters.count("iteration_queue_cut"), 0U);
  const RepeatedTrace repeated = repeated_trace(job.trace(), pass);
  Duration busy{};
  for (const DeviceOp& op : repeated.trace.device_ops) {
    const TraceTime from = std::max(op.start, repeated.window.begin);
    busy += std::max(Duration{}, std::min(op.end(), repeated.window.end) - from);
  }
  EXPECT_EQ(busy, us(500));
}

TEST(JobPass, WithoutLaunchesAtTheEndTheQueueIsCut) {
  const RankPass pass = pass_of(cut_out(0));
  EXPECT_EQ(pass.counters.count("iteration_queue_cut"), 1U);
  EXPECT_EQ(pass.counters.count("iteration_ops_queued_before"), 2U);
}

TEST(JobPass, AnOperationWithoutLaunchBelongsWithTheOneBeforeItOnItsStream) {
  TraceBuilder job = iterations(3);
  job.orphan({.start = 130, .end = 140});
  EXPECT_EQ(pass_of(job).iteration_of, (std::vector<std::uint32_t>{0, 1, 1, 2}));
}

// Each iteration runs a and b. Of iteration 1, b's launch is not recorded, of iteration 2, a's;
// both follow iteration 1's a, before iteration 2's b.
TEST(JobPass, BetweenIterationsAnOperationGoesWithTheOneThatLacksIt) {
  TraceBuilder job;
  const auto run = [&](std::int64_t at, const char* name, bool launched) {
    if (launched) {
      job.kernel({.called = at, .returned = at + 2, .start = at + 5, .end = at + 15, .name = name});
    } else {
      job.orphan({.start = at + 5, .end = at + 15, .name = name});
    }
  };
  for (int i = 0; i < 4; ++i) {
    job.iteration(100 * i, 100 * (i + 1));
    run(100 * i, "a", i != 2);
    run(100 * i + 50, "b", i != 1);
  }
  EXPECT_EQ(pass_of(job).iteration_of, (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 3, 3}));
}

// Stream 1 has no launch at all: its operation at 130 falls into iteration 1.
TEST(JobPass, AnOperationOfAStreamWithoutLaunchesBelongsByTime) {
  TraceBuilder job(0, 1, 2);
  for (int i = 0; i < 3; ++i) {
    job.iteration(100 * i, 100 * (i + 1));
    launch_at(job, 100 * i);
  }
  job.orphan({.start = 130, .end = 140, .stream = 1});
  EXPECT_EQ(pass_of(job).iteration_of, (std::vector<std::uint32_t>{0, 1, 1, 2}));
}

// Host 60 an iteration, device 100: the device sets the pace. From 250, when iteration 0's work
// ended, to 450.
TEST(JobPass, TheSlowerOfHostAndDeviceSetsTheLength) {
  TraceBuilder job;
  for (int i = 0; i < 3; ++i) {
    job.iteration(60 * i, 60 * (i + 1)).kernel({60 * i, 60 * i + 2, 150 + 100 * i, 250 + 100 * i});
  }
  const RankPass pass = pass_of(job);
  EXPECT_EQ(pass.host_time, us(120));
  EXPECT_EQ(pass.device_time, us(200));
  EXPECT_EQ(pass.iteration_time(), us(100));
}

// A copy is queued behind unrecorded work; the synchronisation for it returns at 101, then 20 of
// work. Of [3, 100] the host waited for what came before: 2 of the call are its own.
TEST(JobPass, ASynchronisationForWorkFromBeforeTheWindowTakesNoTime) {
  TraceBuilder job;
  job.copy({0, 1, 100, 101}).call(HostCallKind::kStreamSync, {1, 101}).kernel({103, 105, 106, 126})
      .call(HostCallKind::kStreamSync, {110, 126});
  const RankPass pass = pass_of(job);
  EXPECT_EQ(pass.waits, (Intervals{{TraceTime{us(3)}, TraceTime{us(100)}}}));
  EXPECT_EQ(in_us(pass.host_time), 126 - 97);
  EXPECT_EQ(pass.without_waits(TraceTime{us(0)}), TraceTime{us(97)});
  EXPECT_EQ(pass.without_waits(TraceTime{us(50)}), TraceTime{us(100)});
  EXPECT_EQ(pass.without_waits(TraceTime{us(101)}), TraceTime{us(101)});
}

// Recorded work of before runs until 40; the call waits for it, then for nothing.
TEST(JobPass, SoDoesOneForRecordedWorkFromBefore) {
  TraceBuilder job;
  job.orphan({.start = 0, .end = 40}).call(HostCallKind::kDeviceSync, {10, 41})
      .kernel({50, 52, 55, 75});
  EXPECT_EQ(in_us(pass_of(job).host_time), 52 - 10 - 29);
}

// Four kernels of 100 each were queued before the window. Each of four launches, 95 long, is held
// for 90, from 2 on, until one of these has ended; its kernel runs from 400 + 100 i. Of the holds
// 90 + 90 + 90 + 88 lie before 400, so that of the host's 790, from 10 to 800, 432 are left.
TEST(JobPass, ALaunchHeldByWorkFromBeforeTheWindowTakesNoTime) {
  TraceBuilder job;
  for (std::int64_t i = 0; i < 4; ++i) job.orphan({.start = 100 * i, .end = 100 * (i + 1)});
  for (std::int64_t i = 0; i < 4; ++i) {
    job.kernel({100 * i + 10, 100 * i + 105, 400 + 100 * i, 500 + 100 * i});
    job.queue_full(100 * i + 12, 100 * i + 102);
  }
  job.call(HostCallKind::kDeviceSync, {406, 802});
  const RankPass pass = pass_of(job);
  EXPECT_EQ(pass.waits, (Intervals{{TraceTime{us(12)}, TraceTime{us(102)}},
                                   {TraceTime{us(112)}, TraceTime{us(202)}},
                                   {TraceTime{us(212)}, TraceTime{us(302)}},
                                   {TraceTime{us(312)}, TraceTime{us(400)}}}));
  EXPECT_EQ(in_us(pass.host_time), 432);
  EXPECT_EQ(in_us(pass.device_time), 400);
  EXPECT_EQ(in_us(pass.length), 432);
}

/// So many kernels of 100 were queued before; four launches of 95, at 10 + 100 i, which return 5
/// after one of them has ended. Then a synchronisation from 406 until all is done.
TraceBuilder launches_behind(std::int64_t queued) {
  TraceBuilder job;
  for (std::int64_t i = 0; i < queued; ++i) job.orphan({.start = 100 * i, .end = 100 * (i + 1)});
  for (std::int64_t i = 0; i < 4; ++i) {
    job.kernel({100 * i + 10, 100 * i + 105, 100 * (queued + i), 100 * (queued + i + 1)});
  }
  job.call(HostCallKind::kDeviceSync, {406, 100 * (queued + 4) + 2});
  return job;
}

// 1,000 fill the queue, whether the recording says so or not: of each call 5 are its own, 90 are
// waits. 800 do not: then the four calls are the host's. In both the synchronisation waits from 408
// until the last kernel of before has ended: of the host's 10 to 406, 2 of it and the pass's 400.
TEST(JobPass, WithoutStallsADeepQueueSaysThatALaunchWasHeld) {
  EXPECT_EQ(in_us(pass_of(launches_behind(800)).host_time), 396 + 2 + 400);
  EXPECT_EQ(in_us(pass_of(launches_behind(1000)).host_time), 396 + 2 + 400 - 4 * 90);
}

// Iteration 0's kernel runs until 150 and holds the launch of iteration 1, as iteration 1's would
// that of the next: no part of the host's 100 is lost.
TEST(JobPass, ALaunchHeldByTheIterationBeforeIsHeldInEachPass) {
  TraceBuilder job;
  job.iteration(0, 100).iteration(100, 200);
  job.kernel({0, 2, 5, 150}).kernel({100, 155, 150, 250}).queue_full(102, 152);
  const RankPass pass = pass_of(job);
  EXPECT_EQ(pass.first, 1U);
  EXPECT_TRUE(pass.waits.empty());
  EXPECT_EQ(in_us(pass.host_time), 100);
}

// While another thread launches, time is not lost: the wait counts to 20 only.
TEST(JobPass, AWaitEndsWhereAnotherThreadGoesOn) {
  TraceBuilder job(0, 2, 1);
  job.call(HostCallKind::kDeviceSync, {0, 60}).kernel({20, 22, 40, 60, 0, 1});
  EXPECT_EQ(pass_of(job).waits, (Intervals{{TraceTime{us(2)}, TraceTime{us(20)}}}));
}

// What the call waits for is the pass's own kernel, which runs from 5 on.
TEST(JobPass, AWaitForTheOwnWorkIsKept) {
  TraceBuilder job;
  job.kernel({0, 2, 5, 90}).call(HostCallKind::kDeviceSync, {10, 92});
  const RankPass pass = pass_of(job);
  EXPECT_TRUE(pass.waits.empty());
  EXPECT_EQ(pass.length, us(90));
}

// The call that ends at 300 has waited until 50 for the device; the rest is the profiler's.
TEST(JobPass, AnUnmarkedRecordingIsOneIterationWithoutItsTail) {
  TraceBuilder job;
  job.kernel({0, 5, 10, 50}).call(HostCallKind::kDeviceSync, {20, 300});
  const RankPass pass = pass_of(job);
  EXPECT_FALSE(pass.marked);
  EXPECT_EQ(pass.counters.count("iterations_unmarked"), 1U);
  EXPECT_EQ(pass.host_time, us(50));
  EXPECT_EQ(pass.length, us(50));
}

// Two operations that nothing launched, on a stream of their own, follow the last call, which
// returns at 102: the recording is all from 0 to 350.
TEST(JobPass, UnlaunchedWorkAfterTheLastCallIsPartOfAnUnmarkedRecording) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 5, 10, 100}).call(HostCallKind::kDeviceSync, {12, 102})
      .orphan({.start = 200, .end = 250, .stream = 1})
      .orphan({.start = 300, .end = 350, .stream = 1});
  const RankPass pass = pass_of(job);
  EXPECT_EQ(pass.iteration_of, (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_EQ(pass.counters.count("iteration_ops_outside"), 0U);
  EXPECT_EQ(pass.host_time, us(350));
  EXPECT_EQ(pass.device_time, us(340));
  EXPECT_EQ(pass.length, us(350));
}

// The synchronisation returns at 10, of which 2 are its own and 8 a wait for what is not recorded;
// the kernels, which nothing launched, end at 290.
TEST(JobPass, WorkWithoutAnyLaunchIsPartOfAnUnmarkedRecordingWhereverTheCallsAre) {
  TraceBuilder early;
  early.call(HostCallKind::kDeviceSync, {0, 10});
  early.orphan({.start = 100, .end = 190}).orphan({.start = 200, .end = 290});
  const RankPass pass = pass_of(early);
  EXPECT_EQ(pass.iteration_of, (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(pass.counters.count("iteration_ops_outside"), 0U);
  EXPECT_EQ(pass.host_time, us(282));
  EXPECT_EQ(pass.device_time, us(190));

  TraceBuilder late;  // called after the first kernel, until 192; what lasts longer is nobody's
  late.orphan({.start = 0, .end = 90}).orphan({.start = 100, .end = 190});
  late.call(HostCallKind::kDeviceSync, {120, 192});
  EXPECT_EQ(pass_of(late).iteration_of, (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(pass_of(late).host_time, us(190));
}

// It starts before the last call returns, at 52, and so belongs as it did: the host is done at 52.
TEST(JobPass, UnlaunchedWorkThatOutlastsTheLastCallIsNoHostTime) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 5, 10, 50}).call(HostCallKind::kDeviceSync, {20, 52})
      .orphan({.start = 30, .end = 80, .stream = 1});
  const RankPass pass = pass_of(job);
  EXPECT_EQ(pass.iteration_of, (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(pass.host_time, us(52));
  EXPECT_EQ(pass.length, us(70));
}

TEST(JobPass, ACallWithoutLengthIsPartOfAnUnmarkedRecording) {
  TraceBuilder job;
  job.kernel({0, 0, 1, 6});
  EXPECT_EQ(pass_of(job).iteration_of, (std::vector<std::uint32_t>{0}));
}

// A host that waits for nothing is done at 5: the device, from 200 to 300, sets the length, however
// long what it had to do before.
TEST(JobPass, TimeBetweenLaunchAndStartIsNoPartOfAnUnmarkedIteration) {
  TraceBuilder job;
  job.kernel({0, 5, 200, 300});
  const RankPass pass = pass_of(job);
  EXPECT_EQ(pass.host_time, us(5));
  EXPECT_EQ(pass.length, us(100));
}

/// Iterations of `length`, each with a collective of 10 at its start.
RankTrace meeting(std::uint32_t rank, std::int64_t length) {
  TraceBuilder job(rank);
  for (int i = 0; i < 3; ++i) {
    job.iteration(length * i, length * (i + 1));
    job.collective({length * i, length * i + 2, length * i + 5, length * i + 15}, {});
  }
  return job.trace();
}

TEST(JobPass, RanksThatMeetGoAtTheSlowestOnesPace) {
  const auto pass = must(find_job_pass(JobTrace{{meeting(0, 100), meeting(1, 104)}}));
  EXPECT_EQ(pass.ranks[0].host_time, us(200));
  EXPECT_EQ(pass.ranks[0].length, us(208));
  EXPECT_EQ(pass.iteration_time(), us(104));
}

/// One iteration from `begin` until 1000: a collective of which the host comes `arrives` after the
/// begin, and for which it waits. It ends at 905 on all ranks, 5 after the last has come.
RankTrace only_iteration(std::uint32_t rank, std::int64_t begin, std::int64_t arrives,
                         CollectiveKind kind = CollectiveKind::kAllReduce) {
  TraceBuilder job(rank);
  const std::int64_t at = begin + arrives;
  job.iteration(begin, 1000).collective({at - 5, at - 3, at, 905}, {.kind = kind})
      .call(HostCallKind::kDeviceSync, {at + 1, 907});
  return job.trace();
}

// Rank 1 begins 600 later, and takes 400: so does rank 0, of whose 1000 it waited 600.
TEST(JobPass, WhatTheFirstIterationWaitedForRanksThatBeganLaterIsLeftOut) {
  const auto pass =
      must(find_job_pass(JobTrace{{only_iteration(0, 0, 300), only_iteration(1, 600, 300)}}));
  for (const RankPass& rank : pass.ranks) EXPECT_EQ(rank.length, us(400));
  EXPECT_EQ(pass.ranks[0].ran_without_waits(0, TraceTime{us(300)}), TraceTime{us(900)});
  EXPECT_EQ(pass.ranks[0].counters.count("iteration_start_skew"), 1U);
  EXPECT_EQ(pass.ranks[1].counters.count("iteration_start_skew"), 0U);
}

// Rank 0 needs 500 until it comes, rank 1 300: of 600 by which it began earlier, rank 0 waited 400.
TEST(JobPass, ARankThatIsSlowerToComeKeepsItsTime) {
  const auto pass =
      must(find_job_pass(JobTrace{{only_iteration(0, 0, 500), only_iteration(1, 600, 300)}}));
  for (const RankPass& rank : pass.ranks) EXPECT_EQ(rank.length, us(600));
}

// Collectives of different kinds do not meet: nothing says for how long rank 0 waited.
TEST(JobPass, WhereNoCollectiveMeetsThoseOfALaterRankItsWaitIsSaidToBeUnknown) {
  const auto pass = must(find_job_pass(
      JobTrace{{only_iteration(0, 0, 300),
                only_iteration(1, 600, 300, CollectiveKind::kAllGather)}}));
  EXPECT_EQ(pass.ranks[0].length, us(1000));
  EXPECT_EQ(pass.ranks[0].counters.count("iteration_start_skew_unknown"), 1U);
  EXPECT_EQ(pass.ranks[1].counters.count("iteration_start_skew_unknown"), 0U);
}

TEST(JobPass, ARankWithoutMarkersHasAnothers) {
  TraceBuilder unmarked(1);
  for (int i = 0; i < 3; ++i) launch_at(unmarked, 100 * i);
  const auto pass = must(find_job_pass(JobTrace{{iterations(3).trace(), unmarked.trace()}}));
  EXPECT_EQ(pass.ranks[1].count, 2U);
  EXPECT_EQ(pass.ranks[1].iteration_of, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(JobPass, AJobWithoutDeviceWorkHasNoPass) {
  const auto pass = must(find_job_pass(JobTrace{{RankTrace{}}}));
  EXPECT_EQ(pass.ranks[0].count, 0U);
  EXPECT_EQ(pass.text(), "none recorded");
}

}  // namespace
}  // namespace bubblesim::traces
