// Who gets SMs, and when. The GPU has 4 SMs of 8 warps: 8 blocks of 4 warps at once.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "sim/gpu/sm_blocks.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using Placement = GpuTest;
using Preemptions = GpuTest;
using program::Preemption, program::SharingMode;

class PlacedKernels : public KernelTable {};
TEST_P(PlacedKernels, StartAndEndAsListed) { expect_row(); }

const std::vector<Kernels> kPlacedKernels{
    {"ALoneKernelLastsExactlyItsSoloDuration", {{0, 0, 1'000'003, 1}, {2'000'000, 0, 1'000'003},
     {4'000'000, 0, 1'000'003, 12345}}, {{"end 1", 1'000'003}, {"end 2", 3'000'003},
     {"end 3", 5'000'003}}},
    // 1: 8 blocks, the whole GPU, one wave of 100. 2 comes at 30 and starts at 100.
    {"ANewcomerWaitsForTheWave", {{0, 0, 100}, {30, 1, 50}}, {{"end 1", 100}, {"start 2", 100},
     {"end 2", 150}}},
    // 1: 20 blocks = waves of 8, 8, 4, each 100. The last leaves room for 4 from 200 on. 2: 8
    // blocks of 50: 4 run 200-250, 4 run 250-300.
    {"ANewcomerOfEqualPriorityGetsOnlyTheTailWave", {{0, 0, 300, 20}, {30, 1, 50}}, {{"end 1", 300},
     {"start 2", 200}, {"end 2", 300}}},
    // 1: 24 blocks = 3 waves of 100. 2 comes at 130; at 200 its 8 blocks go first, until 250; then
    // the third wave of 1 runs 250-350.
    {"ANewcomerOfHigherPriorityStartsAtTheNextWave", {{0, 0, 300, 24}, {130, 1, 50, 8, 4, 1}},
     {{"start 2", 200}, {"end 2", 250}, {"end 1", 350}}},
    // High: 12 blocks, waves of 8 and 4, each 100. Low comes at 10: 4 blocks fit from 100 on.
    {"LowPriorityFillsTheTailOfHighPriority", {{0, 0, 200, 12, 4, 5}, {10, 1, 30, 4}},
     {{"end 1", 200}, {"start 2", 100}, {"end 2", 130}}},
    {"SmallKernelsOfDifferentClientsRunTogether", {{0, 0, 100, 4}, {20, 1, 100, 4}},
     {{"end 1", 100}, {"end 2", 120}}},
    // 1 holds 6 of 8. 2 wants 8: places 2, then 6 wait. 3 wants 1 and waits behind 2. 2 ends at
    // 300: 6 blocks from 100 on. 3 starts at 210: when the first 2 blocks of kernel 2 end.
    {"TheHeadOfTheLineBlocksSmallerOnesBehindIt", {{0, 0, 100, 6}, {10, 1, 200}, {20, 2, 10, 1}},
     {{"start 2", 10}, {"end 2", 300}, {"start 3", 210}, {"end 3", 220}}},
    // 1: a block of 5 warps on each SM leaves 3 of 8 on each, 12 in all. 2: blocks of 4 fit
    // nowhere. 3: blocks of 3 would fit, but stand behind 2.
    {"ABlockNeedsRoomOnOneSm", {{0, 0, 100, 4, 5}, {10, 1, 50, 3}, {20, 2, 50, 1, 3}},
     {{"start 2", 100}, {"start 3", 100}}},
    // 1: two blocks of 4 warps sit on two SMs, although one could hold both. Of 2, whose blocks are
    // whole SMs, two run beside them until 70, and the third follows there.
    {"BlocksAreSpreadBeforeTheyAreStacked", {{0, 0, 100, 2}, {20, 1, 50, 3, 8}}, {{"start 2", 20},
     {"end 2", 120}}},
    // 1: whole SMs 0 and 1. 2: one block of 4 warps, on SM 2. 3: three blocks of 2 warps. SM 3 has
    // room for four of them, SM 2 for two: two go to SM 3, then the first of equals, SM 2. So a
    // block of 4 warps still fits onto SM 3, one of 8 nowhere.
    {"TheNextBlockGoesWhereMostOfItsKindFit", {{0, 0, 100, 2, 8}, {0, 1, 300, 1}, {0, 2, 300, 3, 2},
     {10, 3, 10, 1}, {30, 4, 10, 1, 8}}, {{"start 4", 10}, {"start 5", 100}}},
    // 1: 12 blocks of 4 warps: waves of 8 and 4. In the last one each SM holds one. 2: a block that
    // takes a whole SM, such as one of NCCL, comes at 10 and waits for the end of them all.
    {"BlocksOfALastWaveStandInTheWayOfWholeSms", {{0, 0, 200, 12}, {10, 1, 30, 1, 8}},
     {{"start 2", 200}}},
    {"HalfAnSmIsFreeInTheLastWave", {{0, 0, 200, 12}, {10, 1, 30, 1}}, {{"start 2", 100}}},
    // 1: 4 blocks until 100. 2: 16 blocks, two waves of 100 alone. It gets 4 at 0, 4 more at 100
    // with the 4 that refill: then 8 at a time in step. 4 blocks 0-100, 8 blocks 100-200, 4 blocks
    // 200-300.
    {"WavesOutOfStepKeepTheirOwnTime", {{0, 0, 100, 4}, {0, 1, 200, 16}}, {{"end 2", 300}}},
    // 1: 4 blocks until 50. 2: 24 blocks, three waves of 100 alone: 4 at 0, 4 at 50; then each half
    // refills itself: 4 every 50. 24 blocks = 6 cohorts: starts 0 50 100 150 200 250, end 350.
    {"StaggeredCohortsDrainOneAfterTheOther", {{0, 0, 50, 4}, {0, 1, 300, 24}}, {{"end 2", 350}}},
    // Low: 16 blocks, waves 0-100 and 100-200. High comes at 50 with 16 blocks of 10: 100-120.
    {"ALowKernelCanLoseAllItsSlotsAndComeBack", {{0, 0, 200, 16}, {50, 1, 20, 16, 4, 1}},
     {{"end 2", 120}, {"end 1", 220}}},
    {"APriorityChangeReordersThoseWhoWait", {{0, 0, 100}, {10, 0, 10}, {20, 1, 10}},
     {{"start 3", 100}, {"start 2", 110}}, {}, {{30, 1, priority(1)}}},
    // 1 fills the GPU twice, 100 ns a wave. 2 waits for room, behind the second wave of 1, until it
    // may go first: then it gets the first wave's room.
    {"AKernelLosesItsNextWaveToAWaiterWhosePriorityRises", {{0, 0, 200, 16}, {10, 1, 100}},
     {{"start 2", 100}, {"end 2", 200}, {"end 1", 300}}, {}, {{50, 1, priority(1)}}},
    {"ATimelessKernelEndsInItsInstant", {{10, 0, 0, 1'000'000}}, {{"end 1", 10}}}};
INSTANTIATE_TEST_SUITE_P(Placement, PlacedKernels, testing::ValuesIn(kPlacedKernels), name_of_row);

TEST_F(Placement, ALoneKernelIsOneEventHoweverManyWaves) {
  const ClientId c = client();
  kernel_at(0, 1, c, 1'000'003, blocks_of_warps(1'000'000, 4));
  run();
  EXPECT_EQ(engine_.events(), 2u);  // its submission and its end
}

TEST_F(Placement, OnlyKernelsRecordedBesideTheHeadOfTheLinePassOthers) {
  // 2 has the GPU from 100 on, for two waves of 8 blocks, and waits for the second. 4 was recorded
  // beside it, and starts over the head of 3, which has to wait for the end of 2.
  const ClientId other = client();
  const ClientId job =
      gpu_->add_client({.name = "job", .own_kernels = program::OwnKernels::kAsRecorded}, *this);
  kernel_at(0, 1, other, 100, blocks_of_warps(8, 4));
  kernel_at(10, 2, job, 200, blocks_of_warps(16, 4));
  kernel_at(20, 3, other, 100, blocks_of_warps(8, 4));
  kernel_at(30, 4, job, 100, blocks_of_warps(8, 4));
  expect_run({{"start 2", 100}, {"start 4", 100}, {"end 4", 200}, {"end 2", 300},
              {"start 3", 300}, {"end 3", 400}});
}

TEST_F(Placement, DifferentShapesShareByTheScarcerResource) {
  // 1: 4 blocks of 1 warp and 1024 bytes: all shared memory, 4 of 32 warps.
  // 2: 7 warps a block, no shared memory: 28 warps are left = 4 blocks. Both run at once.
  program::KernelProfile hog;
  hog.blocks = 4;
  hog.residency = {.warps = 1, .registers = 0, .shared_memory_bytes = 1024, .blocks_per_sm = 1};
  kernel_at(0, 1, client(), 100, hog);
  kernel_at(0, 2, client(), 100, blocks_of_warps(4, 7));
  kernel_at(0, 3, client(), 100, hog);  // no shared memory left: waits
  expect_run({{"end 2", 100}, {"start 3", 100}});
}

TEST_F(Placement, ListenersMaySubmitFromInsideTheirCalls) {
  const ClientId c = client();
  const program::KernelProfile* profile = keep(blocks_of_warps(8, 4));
  on_finish_ = [&](std::uint64_t name) {
    if (name < 5) {
      gpu_->submit({.client = c, .kind = program::WorkKind::kKernel, .solo = Duration{100},
                    .profile = profile, .cookie = name + 1});
    }
  };
  kernel_at(0, 1, c, 100, *profile);
  expect_run({{"end 5", 500}});
}

struct PooledKernel {
  program::Residency needs;
  SmRange sms;
  FootprintId placed;
  std::uint64_t blocks = 0;
};

// Kernels of blocks of 1, 2 or 3 warps, on all of the 4 SMs or the last 2.
std::vector<PooledKernel> some_kernels() {
  std::vector<PooledKernel> kernels;
  for (const std::uint32_t warps : {1U, 2U, 3U}) {
    const program::Residency needs = blocks_of_warps(1, warps).residency;
    for (const std::uint32_t begin : {0U, 2U}) kernels.push_back({needs, {begin, 4}, {}, 0});
  }
  return kernels;
}

// A pool and its kernels, of which blocks come and leave as random numbers say. The kernel before a
// kernel is not in its way, every other time.
class RandomMoves {
 public:
  explicit RandomMoves(std::size_t most_moves) : pool_(small_gpu(), most_moves) {}

  void move() {
    const std::size_t at = random_() % kernels_.size();
    PooledKernel& kernel = kernels_[at];
    const PooledKernel& before = kernels_[(at + kernels_.size() - 1) % kernels_.size()];
    SmBlocks::Kernel in_pool{kernel.needs, kernel.placed, kernel.sms};
    if (random_() % 2 == 0 && before.blocks > 0) {
      in_pool.passed_over = pool_.add({}, before.needs, before.placed);
    }
    const std::uint64_t blocks = 1 + random_() % 8;
    if (random_() % 2 == 0) {
      came_ = pool_.find_room(in_pool, blocks);
      pool_.take(kernel.placed);
      kernel.blocks += came_;
    } else if (kernel.blocks > blocks) {
      pool_.give(in_pool, kernel.placed, blocks);
      kernel.blocks -= blocks;
    } else if (kernel.blocks > 0) {
      leave(kernel);
    }
  }
  void all_leave() {
    for (PooledKernel& kernel : kernels_) leave(kernel);
  }

  void expect_equal(const RandomMoves& other) const {
    ASSERT_EQ(came_, other.came_);
    ASSERT_EQ(pool_.held(), other.pool_.held());
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      ASSERT_EQ(pool_.footprint(kernels_[i].placed),
                other.pool_.footprint(other.kernels_[i].placed));
    }
  }
  // What is held is what the kernels hold.
  void expect_sum() const {
    Held sum(4);
    for (const PooledKernel& kernel : kernels_) {
      const Held before = sum;
      sum.become_changed(before, pool_.footprint(kernel.placed),
                         [&](SmLoad& here, std::uint32_t blocks) {
                           here += load_of(kernel.needs) * blocks;
                         });
    }
    ASSERT_EQ(pool_.held(), sum);
  }
  [[nodiscard]] const SmBlocks& pool() const { return pool_; }

 private:
  void leave(PooledKernel& kernel) {
    pool_.give_all(kernel.needs, kernel.placed);
    kernel.blocks = 0;
  }

  std::mt19937 random_{7};
  SmBlocks pool_;
  std::vector<PooledKernel> kernels_ = some_kernels();
  std::uint64_t came_ = 0;
};

TEST(SmBlocks, MovesThatAreRememberedAreAsIfWorkedOutAnew) {
  RandomMoves remembered(100'000);
  RandomMoves worked_out(1);
  for (int i = 0; i < 20'000; ++i) {
    remembered.move();
    worked_out.move();
    ASSERT_NO_FATAL_FAILURE(remembered.expect_equal(worked_out));
    ASSERT_NO_FATAL_FAILURE(remembered.expect_sum());
  }
  EXPECT_LE(worked_out.pool().moves(), 1U);
  EXPECT_GT(remembered.pool().moves(), 1'000U);
}

TEST(SmBlocks, KeepsNoMoreThanItIsToldAndWhatIsThere) {
  constexpr std::size_t kMoves = 20;
  RandomMoves moves(kMoves);
  for (int i = 0; i < 20'000; ++i) {
    moves.move();
    ASSERT_LE(moves.pool().moves(), kMoves);
    // Each move adds two at most. Besides there are two of nothing, what is held, what was passed
    // over, and six footprints.
    ASSERT_LE(moves.pool().values(), 2 * kMoves + 10);
  }
}

TEST(SmBlocks, IsEmptyWhenAllHaveLeft) {
  RandomMoves moves(1);
  const program::Residency wave = blocks_of_warps(8, 4).residency;
  for (int i = 0; i < 100; ++i) moves.move();
  EXPECT_FALSE(moves.pool().has_room_for_all(wave));
  moves.all_leave();
  EXPECT_EQ(moves.pool().held(), Held(4));
  EXPECT_TRUE(moves.pool().has_room_for_all(wave));
}

// Driving a client off the GPU, in each of the four ways. The GPU holds 8 blocks of 4 warps.

// 16 blocks, 8 at once: two waves of 50 ns.
program::KernelProfile two_waves() { return blocks_of_warps(16, 4); }

class PreemptedKernels : public KernelTable {};
TEST_P(PreemptedKernels, StartAndEndAsListed) { expect_row(); }

const std::vector<Kernels> kPreemptedKernels{
    // 1 ends at 250: 50 till the wave ended, then the second from 200 on.
    {"after_blocks_the_wave_ends_and_the_rest_waits", {{0, 0, 100, 16}}, {{"end 1", 250}}, {},
     {{20, 0, preempt(Preemption::kAfterBlocks)}, {200, 0, proceed()}}},
    {"after_kernel_what_has_begun_ends_and_the_next_waits", {{0, 0, 100, 16}, {10, 0, 100, 16}},
     {{"end 1", 100}, {"start 2", 200}, {"end 2", 300}}, {},
     {{20, 0, preempt(Preemption::kAfterKernel)}, {200, 0, proceed()}}},
    // 2 starts at 50: when low's wave has drained. 1 ends at 130: low's second wave from 80 on.
    {"another_client_goes_past_blocks_that_are_kept_off", {{0, 0, 100, 16}, {20, 1, 30}},
     {{"start 2", 50}, {"end 2", 80}, {"end 1", 130}}, {},
     {{10, 0, preempt(Preemption::kAfterBlocks)}, {60, 0, proceed()}}},
    // 1 ends at 110: 50 done; at 55 the switch turns back, from 60 on 50 more.
    {"a_context_driven_off_while_the_gpu_switches_to_it_passes_it_on", {{0, 1, 100, 16},
     {0, 0, 100, 16}}, {{"end 1", 110}, {"end 2", 405}}, turns_of(50, 5),
     {{52, 0, preempt(Preemption::kContextSwitch)}, {300, 0, proceed()}}},
    // 2 starts at 25: the switch to another context. 1 ends at 185: 20 done; at 100 the switch
    // back, then 80 more.
    {"a_context_switched_away_keeps_its_progress", {{0, 0, 100, 16}, {20, 1, 30}},
     {{"start 2", 25}, {"end 2", 55}, {"end 1", 185}}, turns_of(1000, 5),
     {{20, 0, preempt(Preemption::kContextSwitch)}, {100, 0, proceed()}}},
    // 1 ends at 180: nobody else had the GPU: no switch.
    {"a_context_alone_stands_still_while_it_is_switched_away", {{0, 0, 100, 16}}, {{"end 1", 180}},
     turns_of(1000, 5), {{20, 0, preempt(Preemption::kContextSwitch)}, {100, 0, proceed()}}},
    {"a_context_whose_kernels_are_kept_off_takes_no_turn", {{1, 0, 100, 16}, {5, 1, 30}},
     {{"end 2", 35}, {"end 1", 150}}, turns_of(10, 0), {{0, 0, preempt(Preemption::kAfterKernel)},
     {50, 0, proceed()}}},
    // 1 ends at 160: 10 before, 90 after.
    {"idle_only_fillers_stand_still_beside_kernels_and_cost_nothing", {{0, 1, 100, 16},
     {10, 0, 60, 4}}, {{"start 2", 10}, {"end 2", 70}, {"end 1", 160}},
     shared(SharingMode::kIdleOnly)},
    // 1: 4 SMs. 2: 2 SMs. 1 ends at 130: 10 whole, 60 at half speed, 60 more.
    {"leftover_fillers_go_on_as_fast_as_the_free_sms_let_them", {{0, 1, 100}, {10, 0, 60, 4}},
     {{"end 2", 70}, {"end 1", 130}}, shared(SharingMode::kLeftover)}};
INSTANTIATE_TEST_SUITE_P(Preemptions, PreemptedKernels,
                         testing::ValuesIn(kPreemptedKernels), name_of_row);

TEST_F(Preemptions, a_reset_kernel_loses_all_that_it_did) {
  const ClientId c = client();
  kernel_at(0, 1, c, 100, two_waves());
  script_.at(70, [&] { gpu_->preempt(c, program::Preemption::kReset); });
  script_.at(200, [&] { gpu_->proceed(c); });
  expect_run({{"end 1", 300}});
  EXPECT_EQ(gpu_->usage(c).resets, 1u);
  EXPECT_NEAR(gpu_->usage(c).sm_seconds, 4 * 170e-9, 1e-15);  // 70 lost, 100 again
}

TEST_F(Preemptions, a_reset_makes_room_for_another_client_at_once) {
  const ClientId low = client();
  const ClientId high = client();
  kernel_at(0, 1, low, 100, two_waves());
  script_.at(20, [&] { gpu_->preempt(low, program::Preemption::kReset); });
  kernel_at(20, 2, high, 30, blocks_of_warps(8, 4));
  script_.at(50, [&] { gpu_->proceed(low); });
  expect_run({{"end 2", 50}, {"end 1", 150}});
}

TEST_F(Preemptions, who_stands_still_uses_nothing_because_somebody_is_reset) {
  // 3 stands still beside 1, from 10 to 110. A reset of a client that has nothing there changes
  // nothing.
  make(small_gpu(), {.mode = program::SharingMode::kIdleOnly});
  const ClientId training = client();
  const ClientId idle = client();
  const ClientId filler = client();
  kernel_at(0, 3, filler, 100, blocks_of_warps(2, 4));
  kernel_at(10, 1, training, 100, blocks_of_warps(8, 4));
  script_.at(20, [&] { gpu_->preempt(idle, program::Preemption::kReset); });
  expect_run({{"end 3", 200}});
  EXPECT_NEAR(gpu_->usage(filler).sm_seconds, 100e-9, 1e-15);  // two blocks, a whole SM's
}

TEST_F(Preemptions, a_form_bounds_resident_blocks) {
  const ClientId c = client();
  Work work{.client = c, .kind = program::WorkKind::kKernel, .solo = Duration{100},
            .profile = keep(two_waves()), .cookie = 1, .most_blocks = 4};
  work_at(0, work);
  kernel_at(0, 2, client(), 50, blocks_of_warps(4, 4));
  run();
  EXPECT_EQ(end(1), 200);  // 16 blocks of 50 ns, 4 at once
  EXPECT_EQ(end(2), 50);   // beside it, in the room that it leaves
}

TEST_F(Preemptions, slices_may_differ_between_contexts) {
  make(small_gpu(), {program::SharingMode::kTimeSliced, Duration{100}, Duration{0}});
  const ClientId a = client();
  const ClientId b = gpu_->add_client({.name = "b", .slice = Duration{10}}, *this);
  kernel_at(0, 1, a, 200, blocks_of_warps(8, 4));
  kernel_at(0, 2, b, 200, blocks_of_warps(8, 4));
  run();
  EXPECT_EQ(end(1), 210);  // 100, then 10 of the other, then 100
}

TEST_F(Preemptions, partitions_have_their_own_sms_and_bandwidth) {
  make(small_gpu(), {.mode = program::SharingMode::kPartitioned});
  const ClientId a = gpu_->add_client({.name = "a", .sm_cap = 2, .bandwidth = 0.5}, *this);
  const ClientId b = gpu_->add_client({.name = "b", .sm_cap = 2, .bandwidth = 0.5}, *this);
  program::KernelProfile streams = blocks_of_warps(8, 4);
  streams.kernel_class = program::KernelClass::kMemory;
  streams.dram_share = 1;
  kernel_at(0, 1, a, 100, streams);
  kernel_at(0, 2, b, 100, blocks_of_warps(4, 4));
  run();
  EXPECT_EQ(end(1), 200);  // 4 of its 8 blocks at once, each with its whole demand served
  EXPECT_EQ(end(2), 100);
}

}  // namespace
}  // namespace bubblesim::gpu
