// Kernels of clients that may use a part of the SMs. 4 SMs; a kernel of 8 blocks of 4 warps fills
// them, and takes two waves on two of them.
#include <cmath>

#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

constexpr std::int64_t kSolo = 1'000'000;

class PartOfSms : public GpuTest {
 protected:
  PartOfSms() {
    spec_.part = {.dram_saturating_sms = 0.5, .dark_clock_gain = 1.2};
    spec_.contention.compute_kernel_memory_boundness = 0;
    spec_.contention.memory_kernel_memory_boundness = 1;
  }
  /// Relative to all SMs.
  double time_on(std::uint32_t sms, program::KernelClass kernel_class, std::uint64_t blocks = 8) {
    make(spec_, {.mode = program::SharingMode::kMps});
    program::KernelProfile profile = blocks_of_warps(blocks, 4);
    profile.kernel_class = kernel_class;
    const std::int64_t now = to_ns(engine_.now());
    kernel_at(now, ++kernels_, client(0, sms), kSolo, profile);
    run(now + 10 * kSolo);
    return static_cast<double>(end(kernels_) - now) / kSolo;
  }
  hardware::GpuSpec spec_ = small_gpu();
  std::uint64_t kernels_ = 0;
};

TEST_F(PartOfSms, AllSmsAreAsRecorded) {
  EXPECT_EQ(time_on(4, program::KernelClass::kMemory), 1);
  EXPECT_EQ(time_on(4, program::KernelClass::kCompute), 1);
}

TEST_F(PartOfSms, HalfOfTheSmsAskForMostOfTheBandwidth) {
  // Two waves of blocks of ((1/2)^4 + (1/2)^4) / (1 + (1/2)^4) = 2 / 17, to the power of 1/4.
  EXPECT_NEAR(time_on(2, program::KernelClass::kMemory), 2 * std::pow(2.0 / 17, 0.25), 1e-5);
}

TEST_F(PartOfSms, OneSmIsFarFromSaturatingIt) {
  // Four waves of blocks of (1 / 256 + 1 / 16) / (1 + 1 / 16) = 1 / 16, to the power of 1/4: 1 / 2.
  EXPECT_NEAR(time_on(1, program::KernelClass::kMemory), 2, 1e-5);
}

TEST_F(PartOfSms, DramKnowsNoWaves) {
  // 12 blocks take two waves on four SMs and on three. DRAM asks for what three SMs ask for:
  // m = ((3/4)^4 + (1/2)^4) / (1 + (1/2)^4) = (97 / 256) / (17 / 16) = 97 / 272, to the power of
  // 1/4, over 3/4; 8 blocks, of which three SMs hold 6, take the same and not two waves.
  const double expected = std::pow(97.0 / 272, 0.25) / 0.75;
  EXPECT_NEAR(time_on(3, program::KernelClass::kMemory, 12), expected, 1e-5);
  EXPECT_NEAR(time_on(3, program::KernelClass::kMemory, 8), expected, 1e-5);
}

TEST_F(PartOfSms, ComputeTakesWholeWaves) {
  // The clock is (4/3)^(1/3) of the full one; 12 blocks take two waves of two, 7 two of one. 8 fill
  // the GPU once: such a grid is sized by the SMs.
  EXPECT_NEAR(time_on(3, program::KernelClass::kCompute, 12), 1 / std::cbrt(4.0 / 3), 1e-5);
  EXPECT_NEAR(time_on(3, program::KernelClass::kCompute, 7), 2 / std::cbrt(4.0 / 3), 1e-5);
  EXPECT_NEAR(time_on(3, program::KernelClass::kCompute, 8), 4.0 / 3 / std::cbrt(4.0 / 3), 1e-5);
}

TEST_F(PartOfSms, TheClockRisesWhileSmsAreDark) {
  EXPECT_NEAR(time_on(3, program::KernelClass::kCompute, 7), 2 / std::cbrt(4.0 / 3), 1e-5);
  EXPECT_NEAR(time_on(2, program::KernelClass::kCompute), 2 / 1.2, 1e-5);  // its most
}

TEST_F(PartOfSms, TheClockStaysWhileOthersUseTheRest) {
  // Half of the kernel in 1,000,000 ns beside the other client; the other half at 1.2 times that.
  make(spec_, {.mode = program::SharingMode::kMps});
  program::KernelProfile compute = blocks_of_warps(8, 4);
  compute.kernel_class = program::KernelClass::kCompute;
  kernel_at(0, 1, client(0, 2), kSolo, compute);
  program::KernelProfile other = blocks_of_warps(4, 4);
  other.kernel_class = program::KernelClass::kCompute;
  kernel_at(0, 2, client(0, 2), kSolo, other);
  expect_run({{"end 2", kSolo}});
  EXPECT_NEAR(static_cast<double>(end(1)), kSolo + kSolo / 1.2, 2);
}

TEST_F(PartOfSms, BlocksThatAllFitAreStackedOnFewerSms) {
  // Alone, 4 blocks sit on four SMs, one each; on two SMs they are two each, still in one wave.
  // DRAM takes (2 / 17)^(1/4) / (1/2); blocks that compute were recorded with the clock they have.
  EXPECT_NEAR(time_on(2, program::KernelClass::kMemory, 4), 2 * std::pow(2.0 / 17, 0.25), 1e-5);
  EXPECT_EQ(time_on(2, program::KernelClass::kCompute, 4), 1);
  EXPECT_EQ(time_on(2, program::KernelClass::kMemory, 2), 1) << "two blocks sit on two SMs";
}

TEST_F(PartOfSms, APartitionsBandwidthBoundsIt) {
  // On one SM it would ask for half of the bandwidth, and has a quarter: 4 waves of 1/2 x 2.
  make(spec_, {.mode = program::SharingMode::kPartitioned});
  program::KernelProfile profile = blocks_of_warps(8, 4);
  profile.kernel_class = program::KernelClass::kMemory;
  profile.dram_share = 1;
  const ClientId own = gpu_->add_client({.name = "c", .sm_cap = 1, .bandwidth = 0.25}, *this);
  kernel_at(0, 1, own, kSolo, profile);
  run();
  EXPECT_NEAR(static_cast<double>(end(1)) / kSolo, 4, 1e-5);
}

TEST_F(PartOfSms, AnUnknownPartIsInProportion) {
  spec_.part = {};
  EXPECT_EQ(time_on(2, program::KernelClass::kMemory), 2);
  EXPECT_EQ(time_on(2, program::KernelClass::kCompute), 2);
}

}  // namespace
}  // namespace bubblesim::gpu
