// Waves alone: what ends when, without a GPU around it; then kernels in turns, by time slices.
#include <gtest/gtest.h>

#include <optional>

#include "sim/gpu/waves.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using Ns = Duration;
using enum hardware::LoneSlice;
using program::Preemption;

class WavesTest : public ::testing::Test {
 protected:
  Waves waves;
};

TEST_F(WavesTest, LastExactlyTheirSoloDuration) {
  // 10 ns in 3 waves: a wave is 3.33 ns, and 3 of them are 10 ns, not 9 and not 12.
  waves.start(Ns{10}, 20, 8);  // 8 + 8 + 4
  waves.place(8);
  EXPECT_EQ(waves.until_last_end(), Ns{10});
  EXPECT_EQ(waves.until_first_end(), Ns{4});       // 3.33, rounded up to see it ended
  EXPECT_EQ(waves.until_last_placed(), Ns{7});   // 6.67: then 4 follow 8
}

TEST_F(WavesTest, RoundingDoesNotAddUpFromWaveToWave) {
  waves.start(Ns{10}, 24, 8);
  waves.place(8);
  Ns now{0};
  while (!waves.finished()) {  // refilled by hand, one event a wave
    const Ns step = waves.until_first_end();
    now += step;
    const Waves::Passed passed = waves.pass(step, Refill::kNone);
    if (waves.unplaced() > 0) waves.place(passed.freed);
  }
  EXPECT_EQ(now, Ns{10});
}

TEST_F(WavesTest, StayExactForAMillionWaves) {
  waves.start(Ns{7'000'000'001}, 8'000'000, 8);
  waves.place(8);
  waves.pass(Ns{3'333'333'333}, Refill::kSelf);
  EXPECT_EQ(waves.until_last_end(), Ns{3'666'666'668});
}

// Copies and memsets.

class CopiesAndMemsets : public GpuTest {
 protected:
  void copy_at(std::int64_t ns, std::uint64_t name, ClientId client, std::int64_t length) {
    work_at(ns, {.client = client, .kind = program::WorkKind::kCopy, .solo = Duration{length},
                 .cookie = name});
  }
};

TEST_F(CopiesAndMemsets, QueueForTheCopyEngines) {
  // Two engines: 1 and 2 run 0-100 and 0-50; 3 runs 50-80; 4 runs 80-90.
  const ClientId c = client();
  copy_at(0, 1, c, 100), copy_at(0, 2, c, 50), copy_at(0, 3, c, 30), copy_at(0, 4, c, 10);
  expect_run({{"end 1", 100}, {"start 3", 50}, {"end 3", 80}, {"start 4", 80}, {"end 4", 90}});
}

TEST_F(CopiesAndMemsets, RunBesideKernels) {
  const ClientId c = client();
  kernel_at(0, 1, c, 100, blocks_of_warps(8, 4)), copy_at(0, 2, c, 100);
  work_at(0, {.client = c, .kind = program::WorkKind::kMemset, .solo = Duration{40}, .cookie = 3});
  expect_run({{"end 1", 100}, {"end 2", 100}, {"end 3", 40}});
}

TEST_F(CopiesAndMemsets, MemsetsNeverQueue) {
  const ClientId c = client();
  for (std::uint64_t name = 1; name <= 10; ++name) {
    work_at(
        0, {.client = c, .kind = program::WorkKind::kMemset, .solo = Duration{40}, .cookie = name});
  }
  run();
  for (std::uint64_t name = 1; name <= 10; ++name) EXPECT_EQ(end(name), 40);
}

TEST_F(CopiesAndMemsets, DoNotWaitForTheirContextsTurn) {
  make(small_gpu(), {.mode = program::SharingMode::kTimeSliced, .slice = Duration{100}});
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 1000, blocks_of_warps(8, 4)), copy_at(10, 2, b, 50);
  expect_run({{"end 2", 60}, {"end 1", 1000}});
}

TEST_F(CopiesAndMemsets, ManyCopiesPassInOrder) {
  const ClientId c = client();
  for (std::uint64_t name = 0; name < 1000; ++name) copy_at(0, name, c, 10);
  run();
  EXPECT_EQ(end(999), 5000);  // two at a time
  EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
}

// Collectives take blocks like kernels, and hold them until the network says that they end.

class Collectives : public GpuTest {
 protected:
  void collective_at(std::int64_t ns, std::uint64_t name, ClientId client,
                     const program::KernelProfile& profile) {
    work_at(ns, {.client = client, .kind = program::WorkKind::kCollective, .profile = keep(profile),
                 .cookie = name});
  }
  void finish_at(std::int64_t ns, std::uint64_t name, std::int64_t end_ns) {
    script_.at(ns, [this, name, end_ns] {
      gpu_->finish_collective(ids_.at(name), SimTime{Duration{end_ns}});
    });
  }
};

TEST_F(Collectives, HoldTheirSmsUntilTheyEnd) {
  // 4 of 8 slots are held until 1000; a kernel of two full waves alone needs four beside it.
  const ClientId c = client();
  collective_at(0, 1, c, blocks_of_warps(4, 4)), kernel_at(0, 2, c, 200, blocks_of_warps(16, 4));
  finish_at(500, 1, 1000);
  expect_run({{"start 1", 0}, {"end 1", 1000}, {"end 2", 400}});
}

TEST_F(Collectives, StartWhenAllOfTheirBlocksAreResident) {
  // 6 of 8 slots are taken until 100: 2 of 4 blocks are resident from 0, all from 100 on.
  const ClientId c = client();
  kernel_at(0, 1, c, 100, blocks_of_warps(6, 4)), collective_at(0, 2, c, blocks_of_warps(4, 4));
  finish_at(150, 2, 160);
  expect_run({{"start 2", 100}, {"end 2", 160}});
}

TEST_F(Collectives, NeverEndByThemselves) {
  collective_at(0, 1, client(), blocks_of_warps(4, 4));
  run();
  EXPECT_FALSE(ended_.contains(1));
  EXPECT_FALSE(engine_.due(engine::EntityId{1}));  // the GPU (entity 1) has nothing pending
}

TEST_F(Collectives, MayBeFinishedFromInsideTheirStart) {
  on_start_ = [&](std::uint64_t name, WorkId work) {
    if (name == 1) gpu_->finish_collective(work, engine_.now() + Duration{70});
  };
  collective_at(10, 1, client(), blocks_of_warps(4, 4));
  expect_run({{"end 1", 80}});
}

TEST_F(Collectives, LargerThanTheGpuStartWhenTheGpuIsTheirs) {
  collective_at(0, 1, client(), blocks_of_warps(100, 4)), finish_at(10, 1, 20);
  expect_run({{"start 1", 0}, {"end 1", 20}});
}

TEST_F(Collectives, StartUnderACapThatComesWhileTheyWait) {
  // 8 blocks wait behind a full GPU; the cap of 2 SMs leaves 4 of them.
  const ClientId c = client();
  kernel_at(0, 1, client(), 100, blocks_of_warps(8, 4));
  collective_at(10, 2, c, blocks_of_warps(8, 4));
  script_.at(20, [&, c] { gpu_->set_sm_cap(c, 2); });
  finish_at(150, 2, 200);
  expect_run({{"start 2", 100}, {"end 2", 200}});
}

TEST_F(Collectives, OfARecordedProgramHoldNoRoomUnderACapAgainstItsOwnWork) {
  // Two SMs each. The first collective has them and waits for its peers: the second one starts all
  // the same, and so does a kernel, in as many waves as its cap makes: 8 blocks of 4 warps, 4 at
  // once.
  make(small_gpu());
  const ClientId recorded = gpu_->add_client(
      {.name = "recorded", .sm_cap = 2, .own_kernels = program::OwnKernels::kAsRecorded}, *this);
  const program::KernelProfile whole = blocks_of_warps(4, 8);
  work_at(0, {.client = recorded, .kind = program::WorkKind::kCollective, .profile = keep(whole),
              .cookie = 1});
  work_at(5, {.client = recorded, .kind = program::WorkKind::kCollective, .profile = keep(whole),
              .cookie = 2});
  kernel_at(10, 3, recorded, 100, blocks_of_warps(8, 4));
  run(10'000);
  expect_times({{"start 1", 0}, {"start 2", 5}, {"start 3", 10}, {"end 3", 210}});
}

TEST_F(Collectives, OfAFrozenContextEndWhenItHasTheGpu) {
  // Slices of 100, no switch cost. Client 0's collective starts at 0, is to end at 150, in the
  // slice of client 1, and ends at 200.
  make(small_gpu(), {.mode = program::SharingMode::kTimeSliced, .slice = Duration{100}});
  const ClientId a = client();
  const ClientId b = client();
  collective_at(0, 1, a, blocks_of_warps(4, 4)), kernel_at(10, 2, b, 500, blocks_of_warps(8, 4));
  finish_at(120, 1, 150);
  run();
  EXPECT_EQ(end(1), 200);
  EXPECT_EQ(end(2), 600);  // 100-200 and from 200 on alone: 500 ns of work
}

TEST_F(Collectives, DrawOnNoSharedResourceWhileTheyWait) {
  hardware::GpuSpec spec = small_gpu();
  make(spec);
  program::KernelProfile memory = blocks_of_warps(4, 4);
  memory.dram_share = 1;
  memory.kernel_class = program::KernelClass::kMemory;
  collective_at(0, 1, client(), memory), kernel_at(0, 2, client(), 100, memory);
  // From 150 on the collective moves data: D = 2, the second kernel runs at half speed.
  finish_at(150, 1, 1000), kernel_at(200, 3, ClientId{1}, 100, memory);
  run();
  EXPECT_EQ(end(2), 100);
  EXPECT_EQ(end(3), 400);
  EXPECT_EQ(end(1), 1000);  // the network set it: contention does not move it
}

// Contexts that take turns. Slices of 100 ns.
Kernels::Setup turns(std::int64_t switch_ns, hardware::LoneSlice lone = kExpired,
                     std::optional<Duration> empty_switch = {}) {
  Kernels::Setup out = turns_of(100, switch_ns);
  out.spec.lone_slice = lone;
  out.sharing.empty_switch = empty_switch;
  return out;
}

class TimeSlices : public GpuTest {
 protected:
  void slice(std::int64_t switch_ns, hardware::LoneSlice lone = kExpired) {
    const Kernels::Setup setup = turns(switch_ns, lone);
    make(setup.spec, setup.sharing);
  }
  /// A has 1, from 0 to 30; then its 2 is announced, which comes at `ns`. B has 9, from 5 on.
  void expect_with_second_at(std::int64_t ns, const Times& times) {
    slice(10);
    const ClientId a = client();
    const ClientId b = client();
    on_finish_ = [this, a](std::uint64_t name) {
      if (name == 1) gpu_->announce(a);
    };
    kernel_at(0, 1, a, 30, full_), kernel_at(5, 9, b, 50, full_), kernel_at(ns, 2, a, 30, full_);
    script_.at(ns, [this, a] { gpu_->retract(a); });
    expect_run(times);
  }
  program::KernelProfile full_ = blocks_of_warps(8, 4);
};

class KernelsInTurns : public KernelTable {};
TEST_P(KernelsInTurns, StartAndEndAsListed) { expect_row(); }

const std::vector<Kernels> kKernelsInTurns{
    // T = 300 each, no switch cost: slices A B A B A B; A ends at 500, B at 600.
    {"TwoEqualJobsFinishASliceApart", {{0, 0, 300}, {0, 1, 300}}, {{"end 1", 500}, {"end 2", 600}},
     turns(0)},
    // 40 with all SMs covered on both sides, 20 with none: B comes fresh, so that the first switch
    // takes 30; A comes back with its blocks, and B is done when it leaves: the second takes 30
    // too.
    {"ASwitchCostsMoreWhereMoreStateIsSavedAndRestored", {{0, 0, 200}, {0, 1, 50}},
     {{"start 2", 130}, {"end 2", 180}, {"end 1", 180 + 30 + 100}},
     turns(40, kExpired, Duration{20})},
    // A 0-100, B 130-230 (fresh), A 270-370, B 410-510: A, done at 370, leaves nothing.
    {"ASwitchBetweenFullContextsCostsAllOfIt", {{0, 0, 200}, {0, 1, 200}}, {{"end 1", 370},
     {"end 2", 370 + 30 + 100}}, turns(40, kExpired, Duration{20})},
    // A has been alone for longer than its slice when B comes at 250: B runs from 260 to 310, and A
    // has been away for 10 + 50 + 10.
    {"WhoeverComesWhenTheSliceIsOverPaysTheSwitchOnly", {{0, 0, 1000}, {250, 1, 50}},
     {{"start 2", 260}, {"end 2", 310}, {"end 1", 1070}}, turns(10)},
    // As on an H100 beside a loop of one kernel and a wait: B comes at 250 and pays the switch
    // only.
    {"ALoneContextThatHasLaunchedNoMoreRenewsNothing", {{0, 0, 1000}, {250, 1, 50}},
     {{"start 2", 260}}, turns(10, kRenewed)},
    // A 0-30; again from 90: B, who comes at 120, waits until 190.
    {"ALoneContextThatComesBackBeginsASlice", {{0, 0, 30}, {90, 0, 1000}, {120, 1, 50}},
     {{"start 3", 200}}, turns(10, kRenewed)},
    // A is done at 250: B pays the switch, and waits for no slice.
    {"ARenewedSliceEndsForNobodyWhoIsOutOfWork", {{0, 0, 250}, {260, 1, 50}}, {{"start 2", 270}},
     turns(10, kRenewed)},
    // A took the GPU at 0. B comes at 40, and runs from 110 to 160.
    {"WhoeverComesDuringTheSliceWaitsForItsEnd", {{0, 0, 1000}, {40, 1, 50}}, {{"start 2", 110},
     {"end 2", 160}, {"end 1", 1070}}, turns(10)},
    // A 0-30, B's turn 40-140 in spite of A's next kernel at 50; A 150-180; B from 190 on.
    {"AContextThatRanDryWaitsForTheOthersWholeSlice", {{0, 0, 30}, {0, 1, 200}, {50, 0, 30}},
     {{"start 3", 150}, {"end 3", 180}, {"end 2", 290}}, turns(10)},
    // A 0-30 and again from 120 on, when its slice is over: B, at 130, has the GPU at once.
    {"AContextThatComesBackToAnIdleGpuHasNoNewTurn", {{0, 0, 30}, {120, 0, 100}, {130, 1, 50}},
     {{"start 3", 140}, {"end 3", 190}, {"end 2", 290}}, turns(10)},
    // B's kernels are kept off from 10 to 60, while A has its turn: A keeps it until 100.
    {"WhoIsDrivenOffWhileItWaitsTakesNothingFromWhoHasTheTurn", {{0, 0, 150}, {5, 1, 50}},
     {{"start 2", 110}, {"end 2", 160}, {"end 1", 220}}, turns(10),
     {{10, 1, preempt(Preemption::kAfterBlocks)}, {60, 1, proceed()}}},
    // A needs 30 of its slice. B follows at once (plus the switch), not at 100.
    {"AnIdleContextIsSkippedAtOnce", {{0, 0, 30}, {0, 1, 50}}, {{"end 1", 30}, {"start 2", 40},
     {"end 2", 90}}, turns(10)},
    // B pays the switch 970 after the end of A, and A when it comes back; the next of B pays none.
    {"AnIdleGpuKeepsTheStateOfWhoHadItLast", {{0, 0, 30}, {1000, 1, 50}, {1500, 1, 50},
     {2000, 0, 30}}, {{"start 1", 0}, {"start 2", 1010}, {"start 3", 1500}, {"start 4", 2010}},
     turns(10)},
    // Both come at 1000, B before A, which had the GPU last, in a turn that is not over by then.
    {"OfTwoThatComeToAnIdleGpuTheFirstHasIt", {{0, 0, 30}, {1000, 1, 50}, {1000, 0, 30}},
     {{"start 2", 1010}, {"start 3", 1070}}, turns_of(5000, 10)},
    // Each has half of the GPU free, and neither uses the other's turn.
    {"ContextsDoNotShareSms", {{0, 0, 100, 1, 1}, {0, 1, 100, 1, 1}}, {{"end 1", 100},
     {"end 2", 200}}, turns(0)},
    // A 0-100, B 100-200, C 200-300, A -350, B -400, C -450.
    {"TurnsGoRoundAllContexts", {{0, 0, 150}, {0, 1, 150}, {0, 2, 150}}, {{"end 1", 350},
     {"end 2", 400}, {"end 3", 450}}, turns(0)},
    {"KernelsOfOneContextShareItsTurn", {{0, 0, 100, 4}, {0, 0, 100, 4}}, {{"end 1", 100},
     {"end 2", 100}}, turns(0)}};
INSTANTIATE_TEST_SUITE_P(TimeSlices, KernelsInTurns,
                         testing::ValuesIn(kKernelsInTurns), name_of_row);

TEST_F(TimeSlices, SwitchesCostTheirTime) {
  // A 0-100, B 110-210, A 220-320, B 330-430: with T = 200, A ends at 320, B at 430.
  slice(10);
  kernel_at(0, 1, client(), 200, full_), kernel_at(0, 2, client(), 200, full_);
  expect_run({{"end 1", 320}, {"end 2", 430}});
}

TEST_F(TimeSlices, ALoneJobIsNeverSlowed) {
  slice(10);
  client();
  kernel_at(5, 1, client(), 12'345, full_);
  expect_run({{"end 1", 12'350}});
  EXPECT_EQ(engine_.events(), 2u);  // no event per slice
}

TEST_F(TimeSlices, WhereALoneContextRenewsItsSliceWhoeverComesWaitsForTheEndOfTheNext) {
  // A's slices are 0-100, 100-200, 200-300: B comes at 250, and runs from 310 to 360. C comes at
  // the end of A's slice from 370, and waits for nothing but the switch.
  slice(10, kRenewed);
  more_launched_ = true;
  kernel_at(0, 1, client(), 1000, full_), kernel_at(250, 2, client(), 50, full_);
  kernel_at(570, 3, client(), 50, full_);
  expect_run({{"start 2", 310}, {"end 2", 360}, {"start 3", 580}, {"end 1", 1000 + 2 * 70}});
}

TEST_F(TimeSlices, ClientsAfterTheFirstMayHaveOneContextTogether) {
  // Half of the GPU each: B and C run together, not one after the other, when A has ended, and as
  // long as neither's context is driven off.
  make(small_gpu(), {.mode = program::SharingMode::kTimeSliced, .slice = Duration{1000},
                     .others_share = true});
  const ClientId a = client();
  const ClientId b = client();
  const ClientId c = client();
  kernel_at(0, 1, a, 100, full_), kernel_at(0, 2, b, 100, blocks_of_warps(1, 1));
  kernel_at(0, 3, c, 100, blocks_of_warps(1, 1));
  script_.at(20, [&] { gpu_->preempt(c, program::Preemption::kContextSwitch); });
  script_.at(300, [&] { gpu_->proceed(c); });
  expect_run({{"end 1", 100}, {"end 2", 400}, {"end 3", 400}});
}

TEST_F(TimeSlices, ABackToBackStreamKeepsItsTurn) {
  // A's three kernels of 30 follow each other in the same instant: B waits for the slice's end at
  // 100, not for the first kernel's. A: 30, 60, 90; then A has no work: B 100-150 by the switch.
  slice(10);
  const ClientId a = client();
  const ClientId b = client();
  const program::KernelProfile* profile = keep(full_);
  on_finish_ = [&](std::uint64_t name) {
    if (name != 1 && name != 2) return;
    script_.at(to_ns(engine_.now()), [&, name] {
      gpu_->submit({.client = a, .kind = program::WorkKind::kKernel, .solo = Duration{30},
                    .profile = profile, .cookie = name + 1});
    });
  };
  kernel_at(0, 1, a, 30, *profile), kernel_at(5, 9, b, 50, full_);
  expect_run({{"end 3", 90}, {"start 9", 100}, {"end 9", 150}});
}

// Nothing follows the second kernel: B from 62 + 10 on.
TEST_F(TimeSlices, AStreamKeepsItsTurnOverItsGaps) {
  expect_with_second_at(32, {{"start 2", 32}, {"end 2", 62}, {"start 9", 72}});
}

// B has its turn at 100 + 10.
TEST_F(TimeSlices, WhatIsAnnouncedOutlastsNoSlice) {
  expect_with_second_at(130, {{"start 9", 110}, {"start 2", 170}});
}

TEST_F(TimeSlices, AnAnnouncementAsksForNoTurn) {
  slice(10);
  const ClientId a = client();
  const ClientId b = client();
  script_.at(0, [&] { gpu_->announce(b); });
  kernel_at(0, 1, a, 250, full_);
  expect_run({{"end 1", 250}});
}

TEST_F(TimeSlices, AWaitingCollectiveUsesUpItsSlices) {
  // A's collective spins; B (200 of work) gets every other slice: 100-200, 300-400.
  slice(0);
  const ClientId a = client();
  work_at(
      0,
      {.client = a, .kind = program::WorkKind::kCollective, .profile = keep(full_), .cookie = 1});
  kernel_at(0, 2, client(), 200, full_);
  run(10'000);
  EXPECT_EQ(end(2), 400);
}

}  // namespace
}  // namespace bubblesim::gpu
