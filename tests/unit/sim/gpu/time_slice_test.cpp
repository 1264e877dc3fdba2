// Contexts that take turns. Slices of 100 ns.
#include <optional>

#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using enum hardware::LoneSlice;
using program::Preemption;

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
    {"KernelsOfOneContextShareItsTurn", {{0, 0, 100, 4}, {0, 0, 100, 4}}, {{"end 1", 100},
     {"end 2", 100}}, turns(0)}};
INSTANTIATE_TEST_SUITE_P(TimeSlices, KernelsInTurns,
                         testing::ValuesIn(kKernelsInTurns), name_of_row);

TEST_F(TimeSlices, SwitchesCostTheirTime) {
  // A 0-100, B 110-210, A 220-320, B 330-430: with T = 200, A ends at 320, B at 430.
  slice(10);
  kernel_at(0, 1, client(), 200, full_), kernel_at(0, 2, client(), 200, full_);
  expect_run({{"end 1", 320}, {"end 2", 430}});
  EXPECT_EQ(gpu_->busy(), Duration{400});  // the device is idle in switches
}

TEST_F(TimeSlices, TurnsGoRoundAllContexts) {
  // Three jobs of 150: A 0-100, B 100-200, C 200-300, A -350, B -400, C -450.
  slice(0);
  for (std::uint64_t name = 1; name <= 3; ++name) kernel_at(0, name, client(), 150, full_);
  expect_run({{"end 1", 350}, {"end 2", 400}, {"end 3", 450}});
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

TEST_F(TimeSlices, AStreamKeepsItsTurnOverItsGaps) {
  // A's second kernel is in its channel when the first ends: 0-30, 32-62. Nothing follows that one:
  // B from 62 + 10 on.
  slice(10);
  const ClientId a = client();
  const ClientId b = client();
  on_finish_ = [&](std::uint64_t name) {
    if (name == 1) gpu_->announce(a);
  };
  kernel_at(0, 1, a, 30, full_), kernel_at(5, 9, b, 50, full_), kernel_at(32, 2, a, 30, full_);
  script_.at(32, [&] { gpu_->retract(a); });
  expect_run({{"start 2", 32}, {"end 2", 62}, {"start 9", 72}});
}

TEST_F(TimeSlices, WhatIsAnnouncedOutlastsNoSlice) {
  // A's next kernel is announced at 30 and comes at 130: B has its turn at 100 + 10.
  slice(10);
  const ClientId a = client();
  const ClientId b = client();
  on_finish_ = [&](std::uint64_t name) {
    if (name == 1) gpu_->announce(a);
  };
  kernel_at(0, 1, a, 30, full_), kernel_at(5, 9, b, 50, full_), kernel_at(130, 2, a, 30, full_);
  script_.at(130, [&] { gpu_->retract(a); });
  expect_run({{"start 9", 110}, {"start 2", 170}});
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
