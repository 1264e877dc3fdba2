// A kernel that follows another process's kernel comes later to the blocks' scheduler. The GPU has
// 4 SMs of 8 warps: 8 blocks of 4 warps at once.
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

class ClientSwitch : public GpuTest {
 protected:
  ClientSwitch() {
    spec_.client_switch = Duration{10};
    make(spec_, {.mode = program::SharingMode::kMps});
  }
  hardware::GpuSpec spec_ = small_gpu();
};

TEST_F(ClientSwitch, StreamsOfOneProcessPayNothing) {
  make(spec_);
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 100, blocks_of_warps(2, 4));
  kernel_at(20, 2, b, 100, blocks_of_warps(2, 4));
  expect_run({{"end 2", 120}});
}

TEST_F(ClientSwitch, OneClientAlonePaysNothing) {
  const ClientId a = client();
  kernel_at(0, 1, a, 100, blocks_of_warps(8, 4));
  kernel_at(100, 2, a, 100, blocks_of_warps(8, 4));
  expect_run({{"end 2", 200}});
}

TEST_F(ClientSwitch, AKernelAfterAnothersComesLater) {
  // 1 of a, 2 of b (+10), 3 of b (its own came before), 4 of a (+10); each 2 blocks of 100.
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 100, blocks_of_warps(2, 4));
  kernel_at(20, 2, b, 100, blocks_of_warps(2, 4));
  kernel_at(40, 3, b, 100, blocks_of_warps(2, 4));
  kernel_at(60, 4, a, 100, blocks_of_warps(2, 4));
  expect_run({{"end 1", 100}, {"end 2", 130}, {"end 3", 140}, {"end 4", 170}});
}

TEST_F(ClientSwitch, TheOthersWorkHidesIt) {
  // 2 comes at 10 and waits for 1, which ends at 100, all the same.
  kernel_at(0, 1, client(), 100, blocks_of_warps(8, 4));
  kernel_at(0, 2, client(), 100, blocks_of_warps(16, 4));
  expect_run({{"start 2", 100}, {"end 2", 200}});
}

TEST_F(ClientSwitch, ItHoldsNoRoom) {
  // 2 comes at 15; 3, of the client that came last, no sooner; 4 (+10) finds the room that is left.
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 50, blocks_of_warps(2, 4));
  kernel_at(5, 2, b, 100, blocks_of_warps(2, 4));
  kernel_at(6, 3, b, 100, blocks_of_warps(2, 4));
  kernel_at(8, 4, a, 100, blocks_of_warps(2, 4));
  expect_run({{"start 2", 15}, {"start 3", 15}, {"start 4", 18}});
}

TEST_F(ClientSwitch, AKernelThatComesWhileOneIsAloneChangesNothingBefore) {
  // 1 has the GPU to itself until 2 comes at 60; its second wave ends at 200 beside it.
  kernel_at(0, 1, client(), 200, blocks_of_warps(12, 4));
  kernel_at(50, 2, client(), 40, blocks_of_warps(4, 4));
  expect_run({{"start 2", 100}, {"end 1", 200}});
}

// Processes of an MPS server at one priority, on a device on which each has an even part of what is
// free. The GPU has 4 SMs of 8 warps: 8 blocks of 4 warps at once.

class EqualClients : public GpuTest {
 protected:
  EqualClients() {
    hardware::GpuSpec spec = small_gpu();
    spec.client_order = hardware::ClientOrder::kEven;
    make(spec, {.mode = program::SharingMode::kMps});
  }
};

TEST_F(EqualClients, ANewcomerGetsHalfOfTheNextWave) {
  // 1: 24 blocks of 100, three waves alone. 2 comes at 30 with 8 blocks of 100: 4 of 100 to 200 and
  // 4 of 200 to 300, beside 4 of kernel 1 each time. 1: 8 + 4 + 4, and 8 from 300 on.
  kernel_at(0, 1, client(), 300, blocks_of_warps(24, 4));
  kernel_at(30, 2, client(), 100, blocks_of_warps(8, 4));
  expect_run({{"start 2", 100}, {"end 2", 300}, {"end 1", 400}});
}

TEST_F(EqualClients, StreamsOfOneProcessStandInLine) {
  make(small_gpu());
  kernel_at(0, 1, client(), 300, blocks_of_warps(24, 4));
  kernel_at(30, 2, client(), 100, blocks_of_warps(8, 4));
  expect_run({{"start 2", 300}});
}

TEST_F(EqualClients, InOrderOfArrivalTheyStandInLineToo) {
  make(small_gpu(), {.mode = program::SharingMode::kMps});
  kernel_at(0, 1, client(), 300, blocks_of_warps(24, 4));
  kernel_at(30, 2, client(), 100, blocks_of_warps(8, 4));
  expect_run({{"start 2", 300}});
}

TEST_F(EqualClients, KernelsOfOneClientStandInLine) {
  // 2 of the same client as 1 waits for its last wave; 3 of another does not.
  const ClientId a = client();
  kernel_at(0, 1, a, 200, blocks_of_warps(16, 4));
  kernel_at(10, 2, a, 100, blocks_of_warps(4, 4));
  kernel_at(20, 3, client(), 100, blocks_of_warps(4, 4));
  run();
  EXPECT_EQ(start(3), 100);
  EXPECT_EQ(start(2), 200);  // with the last 4 blocks of kernel 1
  EXPECT_EQ(end(1), 300);
}

TEST_F(EqualClients, PriorityComesFirst) {
  kernel_at(0, 1, client(0), 300, blocks_of_warps(24, 4));
  kernel_at(30, 2, client(1), 200, blocks_of_warps(16, 4));
  run();
  EXPECT_EQ(end(2), 300);  // all of it from 100 to 300
  EXPECT_EQ(end(1), 500);
}

TEST_F(EqualClients, PartsAreOfSmsNotOfBlocks) {
  // 2's blocks are of one warp: 16 of them cover the two SMs that are its part.
  kernel_at(0, 1, client(), 200, blocks_of_warps(16, 4));
  kernel_at(10, 2, client(), 100, blocks_of_warps(32, 1));
  run();
  EXPECT_EQ(end(2), 300);  // 16 at 100, 16 at 200
  EXPECT_EQ(end(1), 300);  // 8 at 0, 4 at 100, 4 at 200
}

TEST_F(EqualClients, WhatACappedClientCannotUseOthersHave) {
  // 2 may cover one SM, the last: 1 has the part of three, and spreads it over all four, so that at
  // first a block of 2 has the company of one of 1's there.
  kernel_at(0, 1, client(), 300, blocks_of_warps(24, 4));
  kernel_at(10, 2, client(0, 1), 100, blocks_of_warps(4, 4));
  run();
  EXPECT_EQ(end(2), 400);  // 1 at 100, 1 at 200, 2 at 300
  EXPECT_EQ(end(1), 400);  // 8, 6, 6, 4
}

TEST_F(EqualClients, ACollectiveGetsAllItsBlocksAtOnce) {
  // 6 of 8 blocks, more than its part; they are of use only together.
  kernel_at(0, 1, client(), 300, blocks_of_warps(24, 4));
  work_at(10, {.client = client(), .kind = program::WorkKind::kCollective,
               .profile = keep(blocks_of_warps(6, 4)), .cookie = 2});
  on_start_ = [&](std::uint64_t name, WorkId id) {
    if (name == 2) gpu_->finish_collective(id, SimTime{Duration{150}});
  };
  expect_run({{"start 2", 100}, {"end 2", 150}});
}

TEST_F(EqualClients, WavesThatReplaceThemselvesCostNoEvents) {
  // Two kernels of a thousand waves each on half of the GPU: two submissions, the first wave that
  // is shared, two last placements, two ends.
  kernel_at(0, 1, client(), 1'000'000, blocks_of_warps(8'000, 4));
  kernel_at(10, 2, client(), 1'000'000, blocks_of_warps(8'000, 4));
  expect_run({{"end 1", 1'999'000}, {"end 2", 2'000'000}});
  EXPECT_LE(engine_.events(), 10u);
}

}  // namespace
}  // namespace bubblesim::gpu
