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

}  // namespace
}  // namespace bubblesim::gpu
