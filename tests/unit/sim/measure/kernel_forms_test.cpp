// Profiles to forms and back.
#include <gtest/gtest.h>

#include "sim/measure/kernel_forms.hpp"
#include "tests/golden/filling/small_job.hpp"

namespace bubblesim::measure {
namespace {

const hardware::GpuSpec kGpu = golden::small_gpu();

TEST(KernelForms, ARecordedShapeIsKept) {
  const traces::LaunchShape shape{{7, 3, 2}, {32, 4, 1}, 40, 2048};
  const auto profile =
      program::profile_kernel({42, 128, 40, 2048}, program::KernelClass::kMemory, kGpu);
  const capture::KernelForm form = form_of(profile, &shape, "vectorized_elementwise", kGpu);
  EXPECT_EQ(form.shape, shape);
  EXPECT_EQ(form.bound, program::KernelClass::kMemory);
  EXPECT_FALSE(form.tensor);
  EXPECT_EQ(form.dram_share, profile.dram_share);
  EXPECT_EQ(form.issue_share, profile.issue_share);
}

TEST(KernelForms, WithoutAShapeTheBlocksAndTheirResidencyAreTheSame) {
  for (const std::uint32_t threads : {32U, 100U, 256U, 1024U}) {
    for (const std::uint32_t registers : {0U, 16U, 64U, 255U}) {
      const auto profile = program::profile_kernel({1000, threads, registers, 3000},
                                                   program::KernelClass::kCompute, kGpu);
      const capture::KernelForm form = form_of(profile, nullptr, "sgemm_128", kGpu);
      EXPECT_TRUE(form.tensor);
      EXPECT_EQ(form.shape.blocks(), 1000U);
      const program::KernelProfile back = profile_of(form, kGpu);
      EXPECT_EQ(back.blocks, profile.blocks);
      EXPECT_EQ(back.residency.blocks_per_sm, profile.residency.blocks_per_sm)
          << threads << " threads of " << registers << " registers";
      EXPECT_EQ(back.residency.warps, profile.residency.warps);
      EXPECT_EQ(back.kernel_class, profile.kernel_class);
      EXPECT_EQ(back.dram_share, profile.dram_share);
      EXPECT_EQ(back.issue_share, profile.issue_share);
    }
  }
}

// CUDA's grid.x ends at 2^31 - 1: 3 * 2^31 blocks are four rows of 3 * 2^29.
TEST(KernelForms, AGridTooLongForOneDimensionHasTwo) {
  program::KernelProfile profile =
      program::profile_kernel({1, 32, 16, 0}, program::KernelClass::kUnknown, kGpu);
  profile.blocks = std::uint64_t{3} << 31U;
  EXPECT_EQ(shape_of(profile, kGpu).blocks(), profile.blocks);
}

TEST(KernelForms, AShapeThatIsNotTheProfilesIsNotTaken) {
  const traces::LaunchShape shape{{9, 1, 1}, {32, 1, 1}, 16, 0};
  const auto profile =
      program::profile_kernel({42, 128, 40, 0}, program::KernelClass::kUnknown, kGpu);
  EXPECT_EQ(form_of(profile, &shape, "kernel", kGpu).shape.blocks(), 42U);
}

}  // namespace
}  // namespace bubblesim::measure
