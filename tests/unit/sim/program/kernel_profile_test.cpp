// Occupancy by hand: blocks an SM = min(slots, warps, threads, registers, shared memory).
#include "sim/program/kernel_profile.hpp"

#include <gtest/gtest.h>

namespace bubblesim::program {
namespace {

hardware::SmSpec v100() {  // compute capability 7.0
  hardware::SmSpec sm;
  sm.shared_memory_bytes = 98304;
  sm.shared_memory_unit_bytes = 256;
  sm.shared_memory_reserved_bytes = 0;
  return sm;
}
hardware::SmSpec a100() {  // 8.0
  hardware::SmSpec sm;
  sm.shared_memory_bytes = 167936;
  return sm;
}
hardware::SmSpec a10() {  // 8.6
  hardware::SmSpec sm;
  sm.max_threads = 1536;
  sm.max_warps = 48;
  sm.max_blocks = 16;
  sm.shared_memory_bytes = 102400;
  return sm;
}
hardware::SmSpec t4() {  // 7.5
  hardware::SmSpec sm;
  sm.max_threads = 1024;
  sm.max_warps = 32;
  sm.max_blocks = 16;
  sm.shared_memory_bytes = 65536;
  sm.shared_memory_unit_bytes = 256;
  sm.shared_memory_reserved_bytes = 0;
  return sm;
}
hardware::SmSpec h100() {  // 9.0
  hardware::SmSpec sm;
  sm.shared_memory_bytes = 233472;
  return sm;
}

std::uint32_t blocks_per_sm(std::uint32_t threads, std::uint32_t registers, std::uint64_t shared,
                            const hardware::SmSpec& sm) {
  return residency_of({.blocks = 1, .threads_per_block = threads,
                       .registers_per_thread = registers, .shared_memory_per_block = shared},
                      sm).blocks_per_sm;
}

TEST(Occupancy, IsBoundByRegistersOnAV100) {
  // 82 * 32 = 2624 registers a warp, rounded to 2816; 65536 / 2816 = 23 warps, to fours 20;
  // 20 / 8 warps = 2 blocks. Shared memory would allow 98304 / 24576 = 4.
  const Residency r = residency_of({1, 256, 82, 24576}, v100());
  EXPECT_EQ(r.blocks_per_sm, 2u);
  EXPECT_EQ(r.warps, 8u);
  EXPECT_EQ(r.registers, 8u * 2816u);
  EXPECT_EQ(r.shared_memory_bytes, 24576u);
}

TEST(Occupancy, IsBoundBySharedMemory) {
  EXPECT_EQ(blocks_per_sm(128, 32, 24576, v100()), 4u);   // 98304 / 24576
  EXPECT_EQ(blocks_per_sm(128, 32, 24577, v100()), 3u);   // rounded to 24832
  // The driver's 1 KiB a block counts from compute capability 8.0 on:
  // 54976 + 1024 = 56000, rounded to 56064: 167936 / 56064 = 2.995.
  EXPECT_EQ(blocks_per_sm(128, 32, 54976, a100()), 2u);
  EXPECT_EQ(blocks_per_sm(128, 32, 54912, a100()), 3u);   // 167936 / 55936 = 3.002
  EXPECT_EQ(blocks_per_sm(384, 168, 232448, h100()), 1u); // 227 KiB + 1 KiB = all 228
}

TEST(Occupancy, IsBoundByWarpsAndThreads) {
  EXPECT_EQ(blocks_per_sm(1024, 16, 0, v100()), 2u);  // 2048 / 1024
  EXPECT_EQ(blocks_per_sm(1024, 16, 0, a10()), 1u);   // 1536 / 1024
  EXPECT_EQ(blocks_per_sm(1024, 16, 0, t4()), 1u);
  EXPECT_EQ(blocks_per_sm(96, 16, 0, a10()), 16u);    // 48 / 3 warps
  EXPECT_EQ(blocks_per_sm(100, 16, 0, v100()), 16u);  // 4 warps; 64 / 4
}

TEST(Occupancy, IsBoundByBlockSlots) {
  EXPECT_EQ(blocks_per_sm(32, 16, 0, v100()), 32u);
  EXPECT_EQ(blocks_per_sm(32, 16, 0, t4()), 16u);
}

TEST(Occupancy, CountsWholeWarpsInEachPartition) {
  // 255 * 32 = 8160 -> 8192 registers a warp; 65536 / 8192 = 8 warps: 8 / 8 = 1 block of 256.
  EXPECT_EQ(blocks_per_sm(256, 255, 0, a100()), 1u);
  // One-warp blocks of 82 registers: 23 warps by division, 20 in four partitions of 5.
  EXPECT_EQ(blocks_per_sm(32, 82, 0, v100()), 20u);
}

TEST(Occupancy, CountsABlockLargerThanAnSmAsOnePerSm) {
  const Residency r = residency_of({1, 1024, 255, 0}, v100());  // 32 * 8192 = 4 SMs' registers
  EXPECT_EQ(r.blocks_per_sm, 1u);
  EXPECT_EQ(r.registers, 65536u);  // clamped, so that it can be placed
  EXPECT_EQ(residency_of({1, 4096, 0, 0}, v100()).warps, 64u);
}

TEST(Occupancy, TakesAnUnrecordedRegisterCountForNone) {
  EXPECT_EQ(blocks_per_sm(256, 0, 0, v100()), 8u);
}

TEST(Profile, ScalesTheBandwidthShareWithTheSmsTouched) {
  hardware::GpuSpec spec;
  spec.sm = v100();
  spec.sm_count = 80;
  spec.contention.memory_kernel_dram_share = 0.8;
  spec.contention.memory_kernel_issue_share = 0.2;
  EXPECT_DOUBLE_EQ(profile_kernel({800, 256, 32, 0}, KernelClass::kMemory, spec).dram_share, 0.8);
  const KernelProfile small = profile_kernel({20, 256, 32, 0}, KernelClass::kMemory, spec);
  EXPECT_DOUBLE_EQ(small.dram_share, 0.2);   // 20 of 80 SMs: a quarter of 0.8
  EXPECT_DOUBLE_EQ(small.issue_share, 0.2);  // a share of the SMs that it sits on
  EXPECT_EQ(profile_kernel({0, 256, 32, 0}, KernelClass::kMemory, spec).blocks, 1u);
}

}  // namespace
}  // namespace bubblesim::program
