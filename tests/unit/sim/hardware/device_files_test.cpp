// The device files that ship: each loads, and says what the chip is known to be.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/hardware/gpu_spec_file.hpp"
#include "tests/folders.hpp"

namespace bubblesim::hardware {
namespace {

std::vector<DeviceFile> shipped_devices() {
  auto devices = read_device_folder(kDeviceFolder);
  if (!devices) {
    for (const Error& error : devices.error()) ADD_FAILURE() << error.text();
    return {};
  }
  return std::move(*devices);
}

// CUDA C++ Programming Guide, table of technical specifications per compute capability.
struct Occupancy {
  std::uint32_t threads, blocks, warps;
  std::uint64_t shared_memory, shared_unit, shared_reserve;
};
const std::map<std::pair<std::uint32_t, std::uint32_t>, Occupancy> kOccupancy{
    {{7, 0}, {2048, 32, 64, 96 * 1024, 256, 0}},
    {{7, 5}, {1024, 16, 32, 64 * 1024, 256, 0}},
    {{8, 0}, {2048, 32, 64, 164 * 1024, 128, 1024}},
    {{8, 6}, {1536, 16, 48, 100 * 1024, 128, 1024}},
    {{8, 9}, {1536, 24, 48, 100 * 1024, 128, 1024}},
    {{9, 0}, {2048, 32, 64, 228 * 1024, 128, 1024}},
    {{12, 0}, {1536, 24, 48, 100 * 1024, 128, 1024}},
};

TEST(DeviceFiles, EveryShippedFileLoads) {
  std::vector<std::string> ids;
  for (const DeviceFile& device : shipped_devices()) ids.push_back(device.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"a10", "a100-40gb", "a100-80gb", "gh200", "h100", "h200",
                                           "l4", "mi300x", "rtx3090", "rtx4090", "rtx6000ada",
                                           "rtxpro6000", "t4", "v100-16gb", "v100-32gb"}));
}

TEST(DeviceFiles, OccupancyLimitsAreThoseOfTheComputeCapability) {
  for (const DeviceFile& device : shipped_devices()) {
    const GpuSpec& spec = device.spec;
    if (device.id == "mi300x") continue;  // AMD's: below
    ASSERT_TRUE(kOccupancy.contains({spec.compute_major, spec.compute_minor})) << device.id;
    const Occupancy& known = kOccupancy.at({spec.compute_major, spec.compute_minor});
    EXPECT_EQ(spec.sm.max_threads, known.threads) << device.id;
    EXPECT_EQ(spec.sm.max_blocks, known.blocks) << device.id;
    EXPECT_EQ(spec.sm.max_warps, known.warps) << device.id;
    EXPECT_EQ(spec.sm.shared_memory_bytes, known.shared_memory) << device.id;
    EXPECT_EQ(spec.sm.shared_memory_unit_bytes, known.shared_unit) << device.id;
    EXPECT_EQ(spec.sm.shared_memory_reserved_bytes, known.shared_reserve) << device.id;
    EXPECT_EQ(spec.sm.registers, 65536U) << device.id;
    EXPECT_EQ(spec.sm.register_unit, 256U) << device.id;
  }
}

// AMD CDNA 3: 4 SIMDs of 8 waves of 64 threads, 512 KiB of registers, 64 KiB of local data share.
TEST(DeviceFiles, AComputeUnitOfAmdIsAnSmOfWaves) {
  const auto mi300x = find_gpu_spec("mi300x", kDeviceFolder);
  ASSERT_TRUE(mi300x);
  EXPECT_EQ(mi300x->sm.warp_size, 64U);
  EXPECT_EQ(mi300x->sm.max_threads, 4U * 8 * 64);
  EXPECT_EQ(mi300x->sm.registers * 4, 512U * 1024);
  EXPECT_EQ(mi300x->sm.shared_memory_bytes, 64U * 1024);
}

TEST(DeviceFiles, SmCountsMemoryAndBandwidthAreThoseOfTheDataSheets) {
  struct Sheet {
    std::uint32_t sms;
    double gigabytes;  // at most, and at least 1 % less
    double bandwidth;
  };
  const std::map<std::string, Sheet> sheets{
      {"v100-16gb", {80, 17.18, 900e9}},   {"v100-32gb", {80, 34.36, 900e9}},
      {"a100-40gb", {108, 42.95, 1555e9}}, {"a100-80gb", {108, 85.90, 2039e9}},
      {"h100", {132, 85.90, 3350e9}},      {"h200", {132, 151.40, 4800e9}},
      {"rtx6000ada", {142, 51.54, 960e9}}, {"rtxpro6000", {188, 103.08, 1597e9}},
      {"t4", {40, 16.11, 320e9}},          {"l4", {58, 24.16, 300e9}},
      {"a10", {72, 24.16, 600e9}},         {"rtx3090", {82, 25.77, 936e9}},
      {"gh200", {132, 102.63, 4000e9}},    {"mi300x", {304, 206.15, 5300e9}},
      {"rtx4090", {128, 25.27, 1008e9}}};  // 24 GiB, of which the driver keeps a fiftieth
  for (const DeviceFile& device : shipped_devices()) {
    const Sheet& sheet = sheets.at(device.id);
    EXPECT_EQ(device.spec.sm_count, sheet.sms) << device.id;
    EXPECT_EQ(device.spec.dram_bandwidth.value, sheet.bandwidth) << device.id;
    EXPECT_LE(static_cast<double>(device.spec.memory.value), sheet.gigabytes * 1e9) << device.id;
    EXPECT_GE(static_cast<double>(device.spec.memory.value), sheet.gigabytes * 0.985e9)
        << device.id;
  }
}

TEST(DeviceFiles, NamesFromProfilersLeadToTheirDevice) {
  const std::vector<DeviceFile> devices = shipped_devices();
  const std::map<std::string_view, std::string_view> expected{
      {"NVIDIA H100 80GB HBM3", "h100"},       {"NVIDIA H200", "h200"},
      {"Tesla V100-SXM2-16GB", "v100-16gb"},   {"Tesla V100-SXM2-32GB", "v100-32gb"},
      {"Tesla V100-DGXS-32GB", "v100-32gb"},   {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
      {"NVIDIA A100-PG509-200", "a100-40gb"},  {"NVIDIA A100-SXM4-80GB", "a100-80gb"},
      {"A100-SXM4-40GB", "a100-40gb"},         {"nvidia h200", "h200"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx6000ada"},
      {"NVIDIA GeForce RTX 4090", "rtx4090"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtxpro6000"}};
  for (const auto& [recorded, id] : expected) {
    const auto match = match_recorded_name(recorded, devices);
    ASSERT_TRUE(match) << recorded;
    EXPECT_EQ((*match)->id, id) << recorded;
  }
}

TEST(DeviceFiles, AnUnlistedNameIsNeverGuessed) {
  const std::vector<DeviceFile> devices = shipped_devices();
  for (const std::string name : {"NVIDIA H100 PCIe", "Tesla V100", "AMD Radeon Graphics", ""}) {
    EXPECT_FALSE(match_recorded_name(name, devices)) << name;
  }
  EXPECT_NE(match_recorded_name("NVIDIA H100 80GB HBM2", devices).error().message.find(
                "did you mean \"NVIDIA H100 80GB HBM3\"?"),
            std::string::npos);
}

TEST(DeviceFiles, ASpecIsFoundByIdByRecordedNameAndByPath) {
  EXPECT_EQ(find_gpu_spec("h100", kDeviceFolder)->sm_count, 132U);
  EXPECT_EQ(find_gpu_spec("Tesla V100-SXM2-16GB", kDeviceFolder)->sm_count, 80U);
  EXPECT_EQ(find_gpu_spec(kDeviceFolder + "/a100-40gb.json", "")->sm_count, 108U);
  const auto unknown = find_gpu_spec("h10x", kDeviceFolder);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().at(0).message.find("did you mean \"h100\"?"), std::string::npos);
  EXPECT_FALSE(find_gpu_spec("h100", "no/such/folder"));
  EXPECT_FALSE(find_gpu_spec("no/such.json", kDeviceFolder));
}

// nvidia-smi mig -lgip: an A100's 7g has 98 of 108 SMs, an H100's all 132 and its 3g 60.
TEST(DeviceFiles, InstancesHaveTheSmsThatTheDriverLists) {
  const auto sms = [](const char* device, std::uint32_t slices) {
    return find_gpu_spec(device, kDeviceFolder)->mig.sms_of(slices);
  };
  EXPECT_EQ(sms("a100-40gb", 3), 42u);
  EXPECT_EQ(sms("a100-40gb", 7), 98u);
  for (const char* device : {"h100", "h200"}) {
    EXPECT_EQ(sms(device, 1), 16u);
    EXPECT_EQ(sms(device, 3), 60u);
    EXPECT_EQ(sms(device, 4), 64u);
    EXPECT_EQ(sms(device, 7), 132u);
  }
}

TEST(DeviceFiles, TimeSlicesAndSharesAreSet) {
  for (const DeviceFile& device : shipped_devices()) {
    // Measured on GV100, both A100s, H100 (a GH200 has its chip) and H200; other cards have what
    // the driver programs.
    const bool ours = device.id == "h100" || device.id == "h200" || device.id == "gh200";
    const bool measured = ours || device.id.starts_with("a100") || device.id.starts_with("v100");
    const Duration slice = !measured                        ? Duration{1'024'000}
                           : device.id.starts_with("a100") ? Duration{1'900'000}
                           : ours                           ? Duration{2'050'000}
                                                            : Duration{2'100'000};
    const Duration change{!measured ? 50'000 : ours ? 234'000 : 200'000};
    const Duration spread{ours ? 7'000 : 0};
    const Duration client_switch{device.id == "a100-40gb"   ? 20'500   // fitted to pairs
                                 : device.id == "a100-80gb" ? 7'400  // to equal clients
                                                            : 0};
    EXPECT_LE(std::chrono::abs(device.spec.time_slice - slice), spread) << device.id;
    EXPECT_LE(std::chrono::abs(device.spec.context_switch - change), spread) << device.id;
    EXPECT_EQ(device.spec.context_switch_empty.has_value(), ours) << device.id;
    EXPECT_EQ(device.spec.client_switch, client_switch) << device.id;
    EXPECT_GT(device.spec.launch_latency, Duration{0}) << device.id;
    EXPECT_LE(device.spec.completion_notice, device.spec.sync_latency) << device.id;
    EXPECT_EQ(device.spec.contention.memory_kernel_memory_boundness, 1.0) << device.id;
    EXPECT_EQ(device.spec.contention.l2_slowdown, 0.2) << device.id;
  }
}

}  // namespace
}  // namespace bubblesim::hardware
