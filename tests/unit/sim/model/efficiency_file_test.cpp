#include "sim/model/efficiency_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sim/base/input_file.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/roofline_ratio.hpp"

namespace bubblesim::model {
namespace {

const std::string kConfigs = BUBBLESIM_SOURCE_DIR "/configs";

bool has_efficiency(const std::string& device) {
  return std::filesystem::exists(kConfigs + "/efficiency/" + device + ".json");
}

// Devices of traces alone have none: nothing is synthesised on them.
TEST(EfficiencyFile, each_is_a_device_s_and_reads) {
  const auto devices = hardware::read_device_folder(kConfigs + "/devices");
  ASSERT_TRUE(devices);
  std::size_t count = 0;
  for (const auto& device : *devices) {
    const auto found = find_efficiency(device.id, kConfigs + "/efficiency");
    ASSERT_EQ(found.has_value(), has_efficiency(device.id)) << device.id;
    if (!found) continue;
    ++count;
    EXPECT_EQ(found->id, device.id);
    EXPECT_GT(peak_flops(*found, Precision::kFp16), peak_flops(*found, Precision::kFp32));
  }
  const std::filesystem::directory_iterator files(kConfigs + "/efficiency");
  EXPECT_EQ(count, std::count_if(begin(files), end(files), [](const auto& file) {
              return file.path().extension() == ".json";
            }));
}

// What kernels reach of DRAM stands in two files: of those that run together, and of one.
TEST(EfficiencyFile, streams_reach_of_dram_what_the_device_says_within_a_tenth) {
  const auto devices = hardware::read_device_folder(kConfigs + "/devices");
  ASSERT_TRUE(devices);
  for (const auto& device : *devices) {
    if (!has_efficiency(device.id)) continue;
    const auto found = find_efficiency(device.id, kConfigs + "/efficiency");
    ASSERT_TRUE(found) << device.id;
    const double share = found->streams[index_of(KernelKind::kElementwise)].dram_share;
    EXPECT_NEAR(device.spec.dram_reach / share, 1, 0.1) << device.id;
  }
}

TEST(EfficiencyFile, a_constant_without_unit_or_source_and_an_unknown_one_are_all_reported) {
  std::string text = *read_text_file(kConfigs + "/efficiency/a100-80gb.json");
  text.replace(text.find("\"unit\": \"Hz\""), 12, "\"unit\": \"s\"");
  text.replace(text.find("\"l2\""), 4, "\"l3\"");
  const std::string path = testing::TempDir() + "efficiency_file_faults.json";
  std::ofstream(path) << text;
  const auto read = find_efficiency(path, "");
  ASSERT_FALSE(read);
  EXPECT_GE(read.error().size(), 3U);  // the unit, the missing "l2", the unknown "l3"
  std::filesystem::remove(path);
}

TEST(EfficiencyFile, an_unknown_name_is_refused_with_the_nearest) {
  const auto found = find_efficiency("a100-80g", kConfigs + "/efficiency");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error()[0].text().find("a100-80gb"), std::string::npos);
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
