#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sim/base/input_file.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/kernel_time.hpp"
#include "tests/fault.hpp"

namespace bubblesim::model {
namespace {

// 100 SMs, 100 TFLOP/s, 1 TB/s, and nothing but the roofline: every number below is by hand.
hardware::GpuSpec plain_gpu() {
  hardware::GpuSpec gpu;
  gpu.compute_major = 8;
  gpu.sm_count = 100;
  gpu.sm.shared_memory_bytes = 164 * 1024;
  gpu.dram_bandwidth = BytesPerSecond{1e12};
  return gpu;
}

hardware::GpuSpec hopper_gpu() {
  hardware::GpuSpec gpu = plain_gpu();
  gpu.compute_major = 9;
  return gpu;
}

Efficiency plain_efficiency() {
  Efficiency e;
  e.peak_flops = {10e12, 0, 100e12, 100e12, 0};
  e.l2_resident_bytes = 0;
  GemmEfficiency& g = e.gemm;
  g.math_share = 1;
  g.fp32_math_share = 1;
  g.tile_half_size = 0;
  g.wave_overhead_s = 0;
  g.fixed_s = 0;
  g.dram_share = 1;
  g.sm_reach = 0.5;
  g.split_dram_share = 1;
  g.roof_exponent = 20;
  g.idle_speedup = 0;
  g.hot_slowdown = 0;
  e.convolution = g;
  e.attention = {1, 0, 0, 0};
  for (StreamEfficiency& stream : e.streams) stream = {2e-6, 0.5};
  return e;
}

KernelWork gemm(std::uint64_t m, std::uint64_t n, std::uint64_t k) {
  KernelWork work;
  work.kind = KernelKind::kGemm;
  work.gemm = {m, n, k, 1};
  const auto a = static_cast<double>(m), b = static_cast<double>(n), c = static_cast<double>(k);
  work.flops = 2 * a * b * c;
  work.bytes = 2 * (a * c + c * b + a * b);
  return work;
}

// 10 x 10 tiles of 128 x 128 on 100 SMs: 2*128*128*4096 flops / 1 TFLOP/s = 134.2 us.
constexpr double kWave_s = 2.0 * 128 * 128 * 4096 / 1e12;

TEST(GemmTime, a_product_that_leaves_sms_free_takes_more_waves_of_the_same_time) {
  const hardware::GpuSpec hopper = hopper_gpu();
  const Efficiency e = plain_efficiency();
  const KernelWork full = gemm(1280, 1280, 4096);
  EXPECT_NEAR(time_plan(full, {128, 128}, 1, hopper, e, 20).compute_s, 2 * kWave_s, 1e-12);
  EXPECT_NEAR(time_plan(gemm(1024, 1280, 4096), {128, 128}, 1, hopper, e, 20).compute_s, kWave_s,
              1e-12);
  const KernelWork large = gemm(12800, 12800, 4096);
  EXPECT_EQ(time_kernel(large, hopper, e).launch.grid[0], 100U);
  EXPECT_EQ(time_kernel(large, hopper, e, 20).launch.grid[0], 80U);
}

TEST(GemmTime, products_with_a_block_a_tile_leave_nothing_free) {
  const Efficiency e = plain_efficiency();
  const KernelWork large = gemm(12800, 12800, 4096);
  const KernelTime ampere = time_kernel(large, plain_gpu(), e, 20);
  EXPECT_EQ(ampere.duration, time_kernel(large, plain_gpu(), e).duration);
  const hardware::GpuSpec hopper = hopper_gpu();
  KernelWork simt = large;
  simt.precision = Precision::kFp32;
  EXPECT_EQ(time_kernel(simt, hopper, e, 20).duration, time_kernel(simt, hopper, e).duration);
  EXPECT_EQ(time_kernel(simt, hopper, e, 20).launch.grid, time_kernel(simt, hopper, e).launch.grid);
}

// 1280 rows are 100 tiles, as many as SMs; one row more takes a second wave.
TEST(GemmTime, tiles_beyond_the_sms_take_another_wave) {
  for (const auto& [rows, blocks, waves] : {std::tuple{1280, 100, 1}, {1281, 110, 2}}) {
    const GemmPlan plan = time_plan(gemm(static_cast<std::uint64_t>(rows), 1280, 4096), {128, 128},
                                    1, plain_gpu(), plain_efficiency());
    EXPECT_EQ(plan.blocks, blocks);
    EXPECT_NEAR(plan.compute_s, waves * kWave_s, 1e-12);
    EXPECT_NEAR(plan.seconds, waves * kWave_s, 1e-9);
  }
}

TEST(GemmTime, idle_sms_of_the_last_wave_give_back_their_share) {
  Efficiency e = plain_efficiency();
  e.gemm.idle_speedup = 0.5;  // 90 of 100 SMs idle: 1 - 0.5 * 0.9 = 0.55 of the wave
  const GemmPlan plan = time_plan(gemm(1281, 1280, 4096), {128, 128}, 1, plain_gpu(), e);
  EXPECT_NEAR(plan.compute_s, 1.55 * kWave_s, 1e-12);
}

TEST(GemmTime, another_tile_is_taken_where_it_avoids_the_second_wave) {
  // 11 x 10 tiles of 128 x 128 are two waves. 256 x 128: 6 x 10 = 60 tiles, one wave of twice the
  // length. A smaller tile or a split fills the SMs better than either.
  const auto best = plan_gemm(gemm(1281, 1280, 4096), plain_gpu(), plain_efficiency());
  EXPECT_LT(best.seconds, 2 * kWave_s);
}

TEST(GemmTime, a_single_row_is_bound_by_its_weights) {
  // 4096 x 11008 weights of 2 bytes at 1 TB/s: 90.2 us; inputs and outputs add 30 KB.
  const KernelTime time = time_kernel(gemm(1, 4096, 11008), plain_gpu(), plain_efficiency());
  EXPECT_TRUE(time.memory_bound);
  EXPECT_NEAR(to_seconds(time.duration) * 1e6, 90.2, 1.5);
}

TEST(GemmTime, fixed_time_is_the_floor) {
  Efficiency e = plain_efficiency();
  e.gemm.fixed_s = 4e-6;
  const KernelTime time = time_kernel(gemm(8, 8, 8), plain_gpu(), e);
  EXPECT_GE(time.duration, std::chrono::microseconds(4));
  EXPECT_LT(time.duration, std::chrono::microseconds(5));
}

TEST(GemmTime, more_rows_never_take_noticeably_less) {
  Duration longest{};
  for (std::uint64_t m = 16; m <= 8192; m += 16) {
    const Duration now = time_kernel(gemm(m, 4096, 4096), plain_gpu(), plain_efficiency()).duration;
    EXPECT_GE(to_seconds(now), 0.98 * to_seconds(longest)) << m;
    longest = std::max(longest, now);
  }
}

TEST(GemmTime, work_on_missing_units_runs_on_wider_ones) {
  KernelWork work = gemm(1280, 1280, 4096);
  work.precision = Precision::kTf32;  // this device has CUDA cores only for it: 10 TFLOP/s
  const Duration on_cuda_cores = time_kernel(work, plain_gpu(), plain_efficiency()).duration;
  work.precision = Precision::kFp16;
  const Duration on_tensor_cores = time_kernel(work, plain_gpu(), plain_efficiency()).duration;
  EXPECT_NEAR(to_seconds(on_cuda_cores) / to_seconds(on_tensor_cores), 10, 0.1);
}

TEST(GemmTime, launch_follows_the_tile) {
  const KernelTime time = time_kernel(gemm(1280, 1280, 4096), plain_gpu(), plain_efficiency());
  EXPECT_GE(time.launch.grid[0] * time.launch.grid[2], 50U);
  EXPECT_LE(time.launch.shared_memory_bytes, 163U * 1024);
  EXPECT_GE(time.launch.registers_per_thread, 100);
}

TEST(StreamTime, fixed_time_and_bytes_at_the_share_of_bandwidth) {
  KernelWork work;
  work.kind = KernelKind::kElementwise;
  work.elements = 5e6;
  work.bytes = 1e7;  // 10 MB at 0.5 TB/s: 20 us, and 2 us
  const KernelTime time = time_kernel(work, plain_gpu(), plain_efficiency());
  EXPECT_EQ(time.duration, std::chrono::microseconds(22));
  EXPECT_EQ(time.launch.grid[0], 9766U);  // 5e6 / 512
}

TEST(StreamTime, what_the_l2_holds_goes_faster) {
  Efficiency e = plain_efficiency();
  e.l2_resident_bytes = 4e6;
  e.l2_speedup = 2;
  KernelWork work;
  work.kind = KernelKind::kElementwise;
  work.bytes = 1e7;  // 6 MB at 0.5 TB/s, 4 MB at 1 TB/s: 12 + 4 + 2
  EXPECT_EQ(time_kernel(work, plain_gpu(), e).duration, std::chrono::microseconds(18));
}

TEST(AttentionTime, blocks_of_128_queries_take_waves) {
  // 25 heads x 4 blocks of 128 queries = 100 blocks: one wave of 4*128*512*64 flops on 1 TFLOP/s.
  KernelWork work;
  work.kind = KernelKind::kAttention;
  work.gemm = {512, 512, 64, 25};
  work.flops = 4.0 * 25 * 512 * 512 * 64;
  work.bytes = 4.0 * 25 * 512 * 64 * 2;
  const KernelTime time = time_kernel(work, plain_gpu(), plain_efficiency());
  EXPECT_NEAR(to_seconds(time.duration), 4.0 * 128 * 512 * 64 / 1e12, 1e-9);
  EXPECT_EQ(time.launch.grid[0], 4U);
  EXPECT_EQ(time.launch.grid[2], 25U);
}

// 64 single tokens of 850 keys each, 8 heads that share keys by fours: 512 blocks of 64 rows on 100
// SMs of 1 TFLOP/s, 6 waves of (850 + 150) keys at 1.25 times the speed of prompts. The prompt of
// 200 queries has 4 blocks a head, so that 3 of 4 blocks are empty for each of them.
TEST(AttentionTime, single_tokens_beside_prompts_are_blocks_of_their_own) {
  KernelWork work;
  work.kind = KernelKind::kAttention;
  work.gemm = {4, 850, 128, 64 * 8 / 4};
  work.flops = 4.0 * 64 * 8 * 850 * 128;
  work.prompt_queries = 200;
  const double waves = 6 * 4.0 * 64 * 1000 * 128 / 1.25e12;
  const double empty = 3 * 5.12 * 0.35e-6;
  KernelTime time = time_kernel(work, plain_gpu(), plain_efficiency());
  EXPECT_NEAR(to_seconds(time.duration), waves + empty, 1e-9);
  EXPECT_FALSE(time.memory_bound);
  EXPECT_EQ(time.launch.grid, (std::array<std::uint32_t, 3>{4, 1, 512}));
  // FlashAttention 3 serves them as by themselves: heads together, keys cut.
  const hardware::GpuSpec hopper = hopper_gpu();
  const Duration beside = time_kernel(work, hopper, plain_efficiency()).duration;
  work.prompt_queries = 0;
  EXPECT_EQ(time_kernel(work, hopper, plain_efficiency()).duration, beside);
  EXPECT_LT(beside, time.duration);
}

TEST(KernelTime, nothing_to_do_still_takes_a_nanosecond) {
  Efficiency e = plain_efficiency();
  e.streams[index_of(KernelKind::kSoftmax)] = {0, 0.5};
  KernelWork work;
  work.kind = KernelKind::kSoftmax;
  EXPECT_EQ(time_kernel(work, plain_gpu(), e).duration, Duration{1});
  work.kind = KernelKind::kGemm;
  EXPECT_EQ(time_kernel(work, plain_gpu(), e).duration, Duration{1});
  work.kind = KernelKind::kAttention;
  EXPECT_EQ(time_kernel(work, plain_gpu(), e).duration, Duration{1});
}

const std::string kConfigs = BUBBLESIM_SOURCE_DIR "/configs";

bool has_efficiency(const std::string& device) {
  return std::filesystem::exists(kConfigs + "/efficiency/" + device + ".json");
}

// Devices of traces alone have none: nothing is synthesised on them.
TEST(EfficiencyFile, each_is_a_device_s_and_reads) {
  const auto devices = must(hardware::read_device_folder(kConfigs + "/devices"));
  std::size_t count = 0;
  for (const auto& device : devices) {
    const auto found = find_efficiency(device.spec.id, kConfigs + "/efficiency");
    ASSERT_EQ(found.has_value(), has_efficiency(device.spec.id)) << device.spec.id;
    if (!found) continue;
    ++count;
    EXPECT_EQ(found->id, device.spec.id);
    EXPECT_GT(peak_flops(*found, Precision::kFp16), peak_flops(*found, Precision::kFp32));
  }
  const std::filesystem::directory_iterator files(kConfigs + "/efficiency");
  EXPECT_EQ(count, std::count_if(begin(files), end(files), [](const auto& file) {
              return file.path().extension() == ".json";
            }));
}

// What kernels reach of DRAM stands in two files: of those that run together, and of one.
TEST(EfficiencyFile, streams_reach_of_dram_what_the_device_says_within_a_tenth) {
  const auto devices = must(hardware::read_device_folder(kConfigs + "/devices"));
  for (const auto& device : devices) {
    if (!has_efficiency(device.spec.id)) continue;
    const auto found = find_efficiency(device.spec.id, kConfigs + "/efficiency");
    ASSERT_TRUE(found) << device.spec.id;
    const double share = found->streams[index_of(KernelKind::kElementwise)].dram_share;
    EXPECT_NEAR(device.spec.dram_reach / share, 1, 0.1) << device.spec.id;
  }
}

TEST(EfficiencyFile, a_constant_without_unit_or_source_and_an_unknown_one_are_all_reported) {
  std::string text = *read_text_file(kConfigs + "/efficiency/a100-80gb.json");
  text.replace(text.find("\"unit\": \"Hz\""), 12, "\"unit\": \"s\"");
  text.replace(text.find("\"l2\""), 4, "\"l3\"");
  const std::string path = testing::TempDir() + "efficiency_file_faults.json";
  std::ofstream(path) << text;
  const auto read = error_of(find_efficiency(path, ""));
  EXPECT_GE(read.size(), 3U);  // the unit, the missing "l2", the unknown "l3"
  std::filesystem::remove(path);
}

TEST(EfficiencyFile, an_unknown_name_is_refused_with_the_nearest) {
  const auto found = error_of(find_efficiency("a100-80g", kConfigs + "/efficiency"));
  EXPECT_NE(found[0].text().find("a100-80gb"), std::string::npos);
}

// 2 x the FLOP/s, 4 x the bandwidth, the same shares: 1/2, 1/4, and sqrt(1/8) for unknown ones.
TEST(RooflineRatio, follows_what_bounds_the_kernel) {
  hardware::GpuSpec slow, fast;
  slow.dram_bandwidth = BytesPerSecond{1e12};
  fast.dram_bandwidth = BytesPerSecond{4e12};
  Efficiency first, second;
  first.peak_flops = {1e13, 0, 1e14, 0, 0};
  second.peak_flops = {2e13, 0, 2e14, 0, 0};
  const TimedDevice from{slow, first}, to{fast, second};
  EXPECT_NEAR(roofline_ratio(BoundBy::kCompute, Precision::kFp16, from, to), 0.5, 1e-12);
  EXPECT_NEAR(roofline_ratio(BoundBy::kMemory, Precision::kFp16, from, to), 0.25, 1e-12);
  EXPECT_NEAR(roofline_ratio(BoundBy::kUnknown, Precision::kFp16, from, to), 0.353553, 1e-6);
}

}  // namespace
}  // namespace bubblesim::model
