// Who gets SMs, and when. The GPU has 4 SMs of 8 warps: 8 blocks of 4 warps at once.
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using Placement = GpuTest;

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

}  // namespace
}  // namespace bubblesim::gpu
