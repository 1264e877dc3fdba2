// What it costs when kernels of two processes of one context follow each other. The GPU has 4 SMs
// of 8 warps: 8 blocks of 4 warps at once.
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
  run();
  EXPECT_EQ(end(2), 120);
}

TEST_F(ClientSwitch, OneClientAlonePaysNothing) {
  const ClientId a = client();
  kernel_at(0, 1, a, 100, blocks_of_warps(8, 4));
  kernel_at(100, 2, a, 100, blocks_of_warps(8, 4));
  run();
  EXPECT_EQ(end(2), 200);
}

TEST_F(ClientSwitch, AKernelAfterAnothersBeginsLater) {
  // 1 of a, 2 of b (+10), 3 of b (its own came before), 4 of a (+10); each 2 blocks of 100.
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 100, blocks_of_warps(2, 4));
  kernel_at(20, 2, b, 100, blocks_of_warps(2, 4));
  kernel_at(40, 3, b, 100, blocks_of_warps(2, 4));
  kernel_at(60, 4, a, 100, blocks_of_warps(2, 4));
  run();
  EXPECT_EQ(end(1), 100);
  EXPECT_EQ(end(2), 130);
  EXPECT_EQ(end(3), 140);
  EXPECT_EQ(end(4), 170);
}

TEST_F(ClientSwitch, OnceAKernelHoweverManyWaves) {
  // 1 ends at 100. 2: 16 blocks, two waves of 50: 100 + 10 + 100.
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 100, blocks_of_warps(8, 4));
  kernel_at(0, 2, b, 100, blocks_of_warps(16, 4));
  run();
  EXPECT_EQ(end(2), 210);
}

}  // namespace
}  // namespace bubblesim::gpu
