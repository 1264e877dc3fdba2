// How many blocks an SM holds, and the variant that gives the same number.
#include "capture/replay/cuda/residency.hpp"

#include <gtest/gtest.h>

#include "tests/unit/capture/replay_cuda/facts.hpp"

namespace bubblesim::capture::cuda {
namespace {

TEST(Residency, EachResourceLimitsByItself) {
  const DeviceFacts facts = h100();
  EXPECT_EQ(blocks_per_sm(facts, 32, 0, 0), 32U);      // blocks of an SM
  EXPECT_EQ(blocks_per_sm(facts, 256, 0, 0), 8U);      // 2,048 threads
  EXPECT_EQ(blocks_per_sm(facts, 256, 128, 0), 2U);    // 128 * 32 = 4,096 a warp: 16 warps
  EXPECT_EQ(blocks_per_sm(facts, 384, 168, 0), 1U);    // 5,376 a warp: 12 warps
  EXPECT_EQ(blocks_per_sm(facts, 128, 0, 99'000), 2U); // 233,472 / 100,096
}

TEST(Residency, AVariantOfTheSameResidencyIsChosenForRealKernels) {
  struct Case {
    std::uint32_t threads;
    std::uint16_t registers;
    std::uint32_t shared;
    std::uint32_t blocks;
  };
  for (const Case& sample : {Case{256, 32, 0, 8}, Case{128, 255, 0, 2}, Case{384, 168, 200'000, 1},
                          Case{256, 128, 0, 2}, Case{256, 40, 0, 6}, Case{256, 48, 0, 5},
                          Case{1024, 64, 0, 1},
                          Case{640, 96, 0, 1}, Case{128, 80, 0, 5}}) {
    traces::LaunchShape shape;
    shape.block = {sample.threads, 1, 1};
    shape.registers_per_thread = sample.registers;
    shape.shared_memory_bytes = sample.shared;
    const StandInShape made = shape_stand_in(h100(), shape);
    EXPECT_FALSE(made.clamped);
    EXPECT_EQ(made.blocks, sample.blocks) << sample.threads << " x " << sample.registers;
  }
}

TEST(Residency, OfVariantsWithTheNumberTheOneNearestInRegistersIsTaken) {
  // NCCL: one block an SM with 64 registers a thread, too, which would leave half of the SM's.
  traces::LaunchShape shape;
  shape.block = {544, 1, 1};
  shape.registers_per_thread = 96;
  EXPECT_EQ(shape_stand_in(h100(), shape).registers, 96U);
  EXPECT_EQ(shape_stand_in(h100(), shape).blocks, 1U);
}

TEST(Residency, WhereNoVariantHasTheNumberTheNearestIsTaken) {
  traces::LaunchShape shape;
  shape.block = {64, 1, 1};
  shape.registers_per_thread = 200;  // 6,400 a warp: 10 warps, 8 by fours: 4 blocks
  const StandInShape made = shape_stand_in(h100(), shape);
  EXPECT_EQ(made.traced_blocks, 4U);
  EXPECT_EQ(made.registers, 255U);  // 8,192 a warp: 8 warps; 168 gives 12 warps, 6 blocks
  EXPECT_EQ(made.blocks, 4U);
  shape.registers_per_thread = 112;  // 3,584 a warp: 18 warps, 16 by fours: 8 blocks
  EXPECT_EQ(shape_stand_in(h100(), shape).blocks, 8U);
  EXPECT_EQ(shape_stand_in(h100(), shape).registers, 128U);
  shape.registers_per_thread = 144;  // 4,608 a warp: 14 warps, 12 by fours: 6 blocks
  EXPECT_EQ(shape_stand_in(h100(), shape).registers, 168U);
}

TEST(Residency, ShapesBeyondTheGpuAreCut) {
  traces::LaunchShape shape;
  shape.grid = {10, 70'000, 1};
  shape.block = {64, 64, 1};
  shape.shared_memory_bytes = 300'000;
  const StandInShape made = shape_stand_in(h100(), shape);
  EXPECT_TRUE(made.clamped);
  EXPECT_EQ(made.grid[1], 65'535U);
  EXPECT_EQ(made.block, (std::array<std::uint32_t, 3>{64, 16, 1}));
  EXPECT_EQ(made.shared_bytes, 232'448U);
}

}  // namespace
}  // namespace bubblesim::capture::cuda
