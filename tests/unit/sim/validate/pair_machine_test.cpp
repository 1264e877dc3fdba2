// MIG instances and constants of sharing, by hand.
#include "sim/validate/pair_machine.hpp"

#include <gtest/gtest.h>

namespace bubblesim::validate {
namespace {

TEST(MigInstance, HasItsSlicesOfSmsPeakAndBandwidth) {
  PairMachine whole;
  whole.gpu.sm_count = 108;
  whole.gpu.dram_bandwidth.value = 1600;
  whole.gpu.mig = {7, 8, 14};
  whole.efficiency.peak_flops.fill(108);
  const auto three = mig_instance(whole, 3);  // 3g has 4 of 8 memory slices
  ASSERT_TRUE(three);
  EXPECT_EQ(three->gpu.sm_count, 42u);
  EXPECT_DOUBLE_EQ(three->gpu.dram_bandwidth.value, 800);
  EXPECT_DOUBLE_EQ(three->efficiency.peak_flops[0], 42);
  EXPECT_FALSE(mig_instance(whole, 8));
  EXPECT_FALSE(mig_instance(whole, 6)) << "NVIDIA has no profile of 5 or 6 slices";
  const auto five = mig_instance(whole, 5);
  ASSERT_FALSE(five);
  EXPECT_NE(five.error().message.find("those of 1, 2, 3, 4, 7"), std::string::npos);
}

TEST(PutConstant, ChangesTheGpuOrNamesTheNearest) {
  hardware::GpuSpec gpu;
  EXPECT_TRUE(put_constant(gpu, "time_slice", 1024.4));
  EXPECT_EQ(gpu.time_slice, Duration{1024});
  EXPECT_TRUE(put_constant(gpu, "contention/issue_shares", 0.5));
  EXPECT_EQ(gpu.contention.memory_kernel_issue_share, 0.5);
  const auto unknown = put_constant(gpu, "time_slices", 1);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("did you mean \"time_slice\"?"), std::string::npos);
}

}  // namespace
}  // namespace bubblesim::validate
