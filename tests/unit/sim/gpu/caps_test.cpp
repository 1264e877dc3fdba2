// SM caps, as MPS active-thread percentages set them.
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using Caps = GpuTest;

TEST_F(Caps, HalfTheSmsDoubleTheWaves) {
  hardware::GpuSpec v100 = small_gpu();
  v100.sm_count = 80;
  make(v100);
  // 320 blocks, 2 an SM: 160 at once = 2 waves of 100 on 80 SMs; on 40 SMs 80 at once = 4 waves.
  kernel_at(0, 1, client(0, 40), 200, blocks_of_warps(320, 4));
  expect_run({{"end 1", 400}});
}

TEST_F(Caps, ASmallKernelDoesNotFeelACap) {
  kernel_at(0, 1, client(0, 2), 100, blocks_of_warps(4, 4));  // 4 blocks fit 2 SMs
  expect_run({{"end 1", 100}});
}

constexpr SharingSetup kProcesses{.mode = program::SharingMode::kMps};

// 132 blocks on 132 SMs. Of 130 SMs or 66, each takes 132/130 of the tiles, or twice as many.
TEST_F(Caps, AGridSizedByTheSmsFollowsThoseThatItsProcessHas) {
  hardware::GpuSpec h100 = small_gpu();
  h100.sm_count = 132;
  make(h100, kProcesses);
  const ClientId most = client(0, 130);
  const ClientId half = client(0, 66);
  kernel_at(0, 1, most, 6500, blocks_of_warps(132, 8));
  kernel_at(20'000, 2, half, 6500, blocks_of_warps(132, 8));
  kernel_at(40'000, 3, most, 6500, blocks_of_warps(131, 8));  // not sized: two waves
  expect_run({{"end 1", 6600}, {"end 2", 20'000 + 13'000}, {"end 3", 40'000 + 13'000}});
}

// Its blocks are there until it ends: on 2 of 4 SMs four blocks from 0 to 200, and who comes at 50
// for these SMs waits for them.
TEST_F(Caps, BlocksOfASizedGridStayUntilItEnds) {
  make(small_gpu(), kProcesses);
  const ClientId capped = client(0, 2);
  const ClientId first = client(1);
  kernel_at(0, 1, capped, 100, blocks_of_warps(8, 4));
  kernel_at(50, 2, first, 100, blocks_of_warps(8, 4));  // two SMs at once, two from 200 on
  expect_run({{"end 1", 200}, {"start 2", 50}, {"end 2", 250}});
}

// Who is capped later had launched grids for the whole GPU.
TEST_F(Caps, ACapThatComesLaterIsNotTold) {
  make(small_gpu(), kProcesses);
  const ClientId c = client();
  script_.at(10, [&] { gpu_->set_sm_cap(c, 3); });
  kernel_at(20, 1, c, 100, blocks_of_warps(8, 4));
  expect_run({{"end 1", 220}});
}

TEST_F(Caps, CountAllKernelsOfTheClient) {
  // Cap 2 SMs = 4 blocks of 4 warps. Kernel 1 has 3 of them; kernel 2 gets 1 at a time, then 4.
  const ClientId c = client(0, 2);
  kernel_at(0, 1, c, 100, blocks_of_warps(3, 4));
  kernel_at(0, 2, c, 100, blocks_of_warps(4, 4));
  run();
  EXPECT_EQ(end(1), 100);
  EXPECT_EQ(end(2), 200);  // 1 block 0-100, 3 blocks 100-200
}

TEST_F(Caps, ACappedKernelDoesNotBlockOthers) {
  // 1 is capped to 2 SMs and has 4 waves of 4 blocks; 2 takes the other 2 SMs at once.
  kernel_at(0, 1, client(1, 2), 200, blocks_of_warps(16, 4));
  kernel_at(0, 2, client(0), 100, blocks_of_warps(4, 4));
  expect_run({{"end 1", 400}, {"start 2", 0}, {"end 2", 100}});
}

TEST_F(Caps, TwoHalvesRunSideBySide) {
  // Each has 16 blocks, two waves of 100 alone, four waves on half of the SMs.
  kernel_at(0, 1, client(0, 2), 200, blocks_of_warps(16, 4));
  kernel_at(0, 2, client(0, 2), 200, blocks_of_warps(16, 4));
  expect_run({{"end 1", 400}, {"end 2", 400}});
}

TEST_F(Caps, ANewCapLeavesResidentBlocks) {
  // 16 blocks: 8 run 0-100 on all SMs. Cap 1 SM from 50 on: 2 blocks a wave from 100 on.
  const ClientId c = client();
  kernel_at(0, 1, c, 200, blocks_of_warps(16, 4));
  script_.at(50, [&] { gpu_->set_sm_cap(c, 1); });
  expect_run({{"end 1", 100 + 4 * 100}});
}

TEST_F(Caps, ALiftedCapIsUsedAtOnce) {
  // 16 blocks, cap 1 SM: 2 blocks 0-100. At 50 the cap goes: 6 more at 50, to 150; 2 at 100, to
  // 200; 6 at 150, to 250.
  const ClientId c = client(0, 1);
  kernel_at(0, 1, c, 200, blocks_of_warps(16, 4));
  script_.at(50, [&] { gpu_->set_sm_cap(c, kAllSms); });
  expect_run({{"end 1", 250}});
}

TEST_F(Caps, ACapAboveTheDeviceIsNone) {
  kernel_at(0, 1, client(0, 1000), 200, blocks_of_warps(16, 4));
  expect_run({{"end 1", 200}});
}

TEST_F(Caps, LeaveWholeSmsToOthers) {
  // 1: two blocks of 4 warps under a cap of one SM sit on that, although they would be spread over
  // two without it. So three blocks that take whole SMs have room at once.
  kernel_at(0, 1, client(0, 1), 300, blocks_of_warps(2, 4));
  kernel_at(10, 2, client(), 50, blocks_of_warps(3, 8));
  expect_run({{"end 1", 300}, {"end 2", 60}});
}

TEST_F(Caps, OfTwoClientsAreApartAsLongAsThereAreSms) {
  // Caps of 1 and 2 SMs of 4: blocks of whole SMs, four of each client, at once as many as SMs.
  kernel_at(0, 1, client(0, 1), 100, blocks_of_warps(4, 8));
  kernel_at(0, 2, client(0, 2), 100, blocks_of_warps(4, 8));
  kernel_at(0, 3, client(), 50, blocks_of_warps(1, 8));
  expect_run({{"end 1", 400}, {"end 2", 200}, {"end 3", 50}});
}

TEST_F(Caps, BeyondAllSmsShareOnlyWhatThereIsTooLittleOf) {
  // 3 SMs, 1 to 3, and 2, 0 and 1: SM 1 is both's. 1 takes its three; of 2 one block is at once on
  // SM 0; SM 1 is taken for both waves of 1, and has one of the other two then.
  kernel_at(0, 1, client(0, 3), 100, blocks_of_warps(6, 8));
  kernel_at(0, 2, client(0, 2), 100, blocks_of_warps(3, 8));
  expect_run({{"end 1", 100}, {"end 2", 200}});
}

TEST_F(Caps, KeepNobodyWaitingWhoMayNotUseTheirSms) {
  // Halves: the first has SMs 2 and 3, the second 0 and 1, the third again 2 and 3. Kernel 3 waits
  // for 1 until 100, and 4, behind it, goes at once; 5, which may use all, waits behind 3, and 6,
  // behind 5, with it, though SMs 0 and 1 are free from 70 on.
  const ClientId first = client(0, 2);
  const ClientId second = client(0, 2);
  const ClientId third = client(0, 2);
  kernel_at(0, 1, first, 100, blocks_of_warps(2, 8));
  kernel_at(10, 3, third, 100, blocks_of_warps(2, 8));
  kernel_at(20, 4, second, 50, blocks_of_warps(2, 8));
  kernel_at(30, 5, client(), 50, blocks_of_warps(2, 8));
  kernel_at(40, 6, second, 50, blocks_of_warps(2, 8));
  expect_run({{"start 4", 20}, {"end 4", 70}, {"start 3", 100}, {"start 5", 100},
              {"start 6", 150}});
}

}  // namespace
}  // namespace bubblesim::gpu
