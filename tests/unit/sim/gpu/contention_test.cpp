// What kernels of different clients cost each other. 4 SMs; kernels of 4 blocks of 4 warps sit on
// all of them and leave half of each free.
#include "sim/gpu/contention.hpp"

#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using ContentionOnGpu = GpuTest;

program::KernelProfile shares(program::KernelClass kernel_class, double dram, double issue) {
  program::KernelProfile profile = blocks_of_warps(4, 4);
  profile.kernel_class = kernel_class;
  profile.dram_share = dram;
  profile.issue_share = issue;
  return profile;
}

TEST_F(ContentionOnGpu, TwoMemoryBoundKernelsRunAtHalfSpeed) {
  kernel_at(0, 1, client(), 100, shares(program::KernelClass::kMemory, 1, 0));
  kernel_at(0, 2, client(), 100, shares(program::KernelClass::kMemory, 1, 0));
  expect_run({{"end 1", 200}, {"end 2", 200}});
}

TEST_F(ContentionOnGpu, ComplementaryKernelsRunAtFullSpeed) {
  kernel_at(0, 1, client(), 100, shares(program::KernelClass::kMemory, 0.9, 0.2));
  kernel_at(0, 2, client(), 100, shares(program::KernelClass::kCompute, 0.1, 0.8));
  expect_run({{"end 1", 100}, {"end 2", 100}});
}

TEST_F(ContentionOnGpu, ProcessorSharingOfUnequalJobs) {
  // Two memory-bound jobs of 100 and 300: both at half speed until 200 (100 done each), then the
  // second alone: 200 more, end 400.
  kernel_at(0, 1, client(), 100, shares(program::KernelClass::kMemory, 1, 0));
  kernel_at(0, 2, client(), 300, shares(program::KernelClass::kMemory, 1, 0));
  expect_run({{"end 1", 200}, {"end 2", 400}});
}

TEST_F(ContentionOnGpu, ProcessorSharingOfALateComer) {
  // 1 alone until 60; both at half speed: 1 has 40 left, ends at 140; 2 has 40 of 100 done then,
  // 60 left alone: ends at 200.
  kernel_at(0, 1, client(), 100, shares(program::KernelClass::kMemory, 1, 0));
  kernel_at(60, 2, client(), 100, shares(program::KernelClass::kMemory, 1, 0));
  expect_run({{"end 1", 140}, {"end 2", 200}});
}

TEST_F(ContentionOnGpu, OnlyTheMemoryBoundPartSlows) {
  // D = 2. Compute (0.1 bound): 1 / (0.9 + 0.1 * 2) -> 100 ns take 110. Then the memory kernel,
  // 110 ns at half speed = 55 done, runs its last 45 alone: 155.
  kernel_at(0, 1, client(), 100, shares(program::KernelClass::kCompute, 1, 0));
  kernel_at(0, 2, client(), 100, shares(program::KernelClass::kMemory, 1, 0));
  expect_run({{"end 1", 110}, {"end 2", 155}});
}

TEST_F(ContentionOnGpu, KernelsOfOneClientDoNotSlowEachOther) {
  const ClientId c = client();
  kernel_at(0, 1, c, 100, shares(program::KernelClass::kMemory, 1, 1));
  kernel_at(0, 2, c, 100, shares(program::KernelClass::kMemory, 1, 1));
  expect_run({{"end 1", 100}, {"end 2", 100}});
}

TEST_F(ContentionOnGpu, IssueSlotsAreSharedOnTheSameSms) {
  // I = 0.75 + 0.75 = 1.5 on all four SMs; compute kernels are 0.9 bound by issue:
  // 0.1 + 0.9 * 1.5 = 1.45.
  kernel_at(0, 1, client(), 100, shares(program::KernelClass::kCompute, 0, 0.75));
  kernel_at(0, 2, client(), 100, shares(program::KernelClass::kCompute, 0, 0.75));
  expect_run({{"end 1", 145}, {"end 2", 145}});
}

TEST_F(ContentionOnGpu, IssueSlotsOfDifferentSmsAreNotShared) {
  // Two blocks each: two SMs each, I = 2 * 0.75 * 2/4 = 0.75.
  program::KernelProfile small = shares(program::KernelClass::kCompute, 0, 0.75);
  small.blocks = 2;
  kernel_at(0, 1, client(), 100, small);
  kernel_at(0, 2, client(), 100, small);
  expect_run({{"end 1", 100}, {"end 2", 100}});
}

TEST_F(ContentionOnGpu, NeighboursBandwidthSlowsThroughL2) {
  hardware::GpuSpec spec = small_gpu();
  spec.contention.l2_slowdown = 0.2;
  make(spec);
  // D = 0.9 fits; 1 sees 0.4 of the other: 1 + 0.2 * 0.4 = 1.08; 2 sees 0.5: 1.1.
  kernel_at(0, 1, client(), 1000, shares(program::KernelClass::kMemory, 0.5, 0));
  kernel_at(0, 2, client(), 1000, shares(program::KernelClass::kMemory, 0.4, 0));
  expect_run({{"end 1", 1080}});
  // 2: 1080 / 1.1 = 981.8 done, 18.2 left alone: 1098.2, seen at the next whole nanosecond.
  EXPECT_EQ(end(2), 1099);
}

TEST_F(ContentionOnGpu, HalfOfTheBlocksDemandHalfOfTheBandwidth) {
  const Contention contention(hardware::ContentionSpec{}, 4);
  DemandSum demands;
  demands.set_clients(2);
  const program::KernelProfile memory = shares(program::KernelClass::kMemory, 1, 0);
  demands.add(ClientId{1}, Contention::demand(memory, 2, 4, 1));
  demands.add(ClientId{0}, Contention::demand(memory, 4, 4, 1));
  const Pressure all = contention.pressure(demands.total());  // D = 1.5
  const double own = demands.demand_of(ClientId{0}).dram;
  EXPECT_DOUBLE_EQ(contention.rate(all, own, program::KernelClass::kMemory), 1 / 1.5);
  EXPECT_DOUBLE_EQ(contention.rate(all, own, program::KernelClass::kUnknown),
                   1 / (0.7 + 0.3 * 1.5));
}

TEST_F(ContentionOnGpu, AClientDemandsAtMostAllAndARoundForgetsTheOneBefore) {
  DemandSum demands;
  demands.set_clients(3);
  demands.add(ClientId{2}, {0.8, 0.5});
  demands.add(ClientId{0}, {0.3, 0.1});
  demands.add(ClientId{2}, {0.8, 0.25});
  const Demand total = demands.total();
  EXPECT_DOUBLE_EQ(total.dram, 1.3);  // 1 of client 2
  EXPECT_DOUBLE_EQ(total.issue, 0.85);
  EXPECT_EQ(demands.demand_of(ClientId{2}).dram, 1);
  demands.clear();
  EXPECT_EQ(demands.total().dram, 0);
  EXPECT_EQ(demands.demand_of(ClientId{2}).issue, 0);
  demands.clear();
  demands.add(ClientId{1}, {0.25, 0});
  demands.add(ClientId{0}, {0.5, 0});
  EXPECT_EQ(demands.total().dram, 0.75);  // nothing of the rounds before
  demands.clear();
  demands.add(ClientId{1}, {0.5, 0});
  EXPECT_EQ(demands.total().dram, 0.5);
  EXPECT_EQ(demands.demand_of(ClientId{0}).dram, 0);
}

TEST_F(ContentionOnGpu, JobsThatNeverOverlapDoNotInteract) {
  kernel_at(0, 1, client(), 100, shares(program::KernelClass::kMemory, 1, 1));
  kernel_at(100, 2, client(), 100, shares(program::KernelClass::kMemory, 1, 1));
  expect_run({{"end 1", 100}, {"end 2", 200}});
}

}  // namespace
}  // namespace bubblesim::gpu
