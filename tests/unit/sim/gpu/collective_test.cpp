// Collectives take blocks like kernels, and hold them until the network says that they end.
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

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
  collective_at(0, 1, c, blocks_of_warps(4, 4));
  kernel_at(0, 2, c, 200, blocks_of_warps(16, 4));
  finish_at(500, 1, 1000);
  expect_run({{"start 1", 0}, {"end 1", 1000}, {"end 2", 400}});
}

TEST_F(Collectives, StartWhenAllOfTheirBlocksAreResident) {
  // 6 of 8 slots are taken until 100: 2 of 4 blocks are resident from 0, all from 100 on.
  const ClientId c = client();
  kernel_at(0, 1, c, 100, blocks_of_warps(6, 4));
  collective_at(0, 2, c, blocks_of_warps(4, 4));
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
  collective_at(0, 1, client(), blocks_of_warps(100, 4));
  finish_at(10, 1, 20);
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
  collective_at(0, 1, a, blocks_of_warps(4, 4));
  kernel_at(10, 2, b, 500, blocks_of_warps(8, 4));
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
  collective_at(0, 1, client(), memory);
  kernel_at(0, 2, client(), 100, memory);
  // From 150 on the collective moves data: D = 2, the second kernel runs at half speed.
  finish_at(150, 1, 1000);
  kernel_at(200, 3, ClientId{1}, 100, memory);
  run();
  EXPECT_EQ(end(2), 100);
  EXPECT_EQ(end(3), 400);
  EXPECT_EQ(end(1), 1000);  // the network set it: contention does not move it
}

}  // namespace
}  // namespace bubblesim::gpu
