// Faulty device files: each fault is found, with its place.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/input_file.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/hardware/power_spec.hpp"
#include "tests/fault.hpp"
#include "tests/folders.hpp"

namespace bubblesim::hardware {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

std::string h100_text() {
  return read_text_file(BUBBLESIM_SOURCE_DIR "/configs/devices/h100.json").value();
}

// The line of a key, replaced.
std::string with_line(std::string text, const std::string& key, const std::string& line) {
  const std::size_t start = text.find("\"" + key + "\"");
  const std::size_t end = text.find('\n', start);
  const bool comma = text[end - 1] == ',';
  return text.replace(start, end - start, line + (comma && !line.empty() ? "," : ""));
}

// "place: message" of every fault.
std::vector<std::string> faults_of(const std::string& text) {
  // One file a test: they run side by side.
  const std::string path = ::testing::TempDir() + "gpu_spec_file_test_" +
                           ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                           ".json";
  std::ofstream(path) << text;
  const auto device = read_device_file(path);
  std::vector<std::string> out;
  if (device) return out;
  for (const Error& error : device.error()) {
    EXPECT_EQ(error.file, path);
    out.push_back(error.place + ": " + error.message);
  }
  return out;
}

TEST(GpuSpecFile, AConstantWithoutASourceIsReported) {
  const std::string text = with_line(
      with_line(h100_text(), "sm_count", R"("sm_count": {"value": 132, "unit": "SMs"})"),
      "time_slice", R"("time_slice": {"value": "1ms", "source": ""})");
  EXPECT_THAT(faults_of(text),
              ElementsAre("/sm_count: this constant has no \"source\"; expected where its value "
                          "comes from",
                          "/time_slice/source: found no text; expected where the value comes "
                          "from"));
}

TEST(GpuSpecFile, AWrongOrMissingUnitIsReported) {
  const std::string text = with_line(
      with_line(h100_text(), "sm_count",
                R"("sm_count": {"value": 132, "unit": "cores", "source": "x"})"),
      "max_warps", R"("max_warps": {"value": 64, "source": "x"})");
  EXPECT_THAT(faults_of(text),
              ElementsAre("/sm_count/unit: found \"cores\"; expected \"SMs\"",
                          "/sm/max_warps: required key \"unit\" is missing"));
}

TEST(GpuSpecFile, ABareNumberOrAMissingConstantIsReported) {
  const std::string text =
      with_line(with_line(h100_text(), "copy_engines", R"("copy_engines": 2)"), "stream_gap", "");
  EXPECT_THAT(faults_of(text),
              ElementsAre("/copy_engines: found the number 2; expected an object",
                          ": required key \"stream_gap\" is missing"));
}

TEST(GpuSpecFile, ValuesOutsideTheirRangeAreReported) {
  std::string text = with_line(h100_text(), "compute_capability",
                               R"("compute_capability": {"value": "nine", "source": "x"})");
  text = with_line(text, "time_slice", R"("time_slice": {"value": "0ns", "source": "x"})");
  text = with_line(text, "max_threads",
                   R"("max_threads": {"value": 1024, "unit": "threads", "source": "x"})");
  text = with_line(text, "l2_slowdown",
                   R"("l2_slowdwn": {"value": 0.2, "unit": "slowdown per share", "source": "x"})");
  text = with_line(text, "3g", R"("3g": {"value": 47, "unit": "SMs", "source": "x"})");
  EXPECT_THAT(
      faults_of(text),
      ElementsAre("/compute_capability/value: expected a compute capability such as \"9.0\"",
                  "/sm/max_threads: found 1024; expected 2048, max_warps times warp_size",
                  HasSubstr("/time_slice/value: found the text \"0ns\"; expected a duration from"),
                  "/contention: required key \"l2_slowdown\" is missing",
                  "/mig/instances/3g/value: found 47; expected 48 to 132, what its slices have and "
                  "what the GPU has",
                  HasSubstr("/contention/l2_slowdwn: unknown key \"l2_slowdwn\"; did you mean "
                            "\"l2_slowdown\"?")));
}

TEST(GpuSpecFile, AFileCutAnywhereIsRefused) {
  const std::string text = h100_text();
  for (std::size_t size = 0; size + 2 < text.size(); size += 97) {
    EXPECT_FALSE(faults_of(text.substr(0, size)).empty()) << size;
  }
}

// "._h100.json" stands beside "h100.json" in an archive that was made on a Mac.
TEST(GpuSpecFile, HiddenFilesOfAFolderAreNotRead) {
  const std::string folder = ::testing::TempDir() + "gpu_spec_file_test_hidden";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/h100.json") << h100_text();
  std::ofstream(folder + "/._h100.json") << "no JSON";
  const auto devices = read_device_folder(folder);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(devices);
  EXPECT_EQ(devices->size(), 1U);
}

TEST(GpuSpecFile, ARecordedNameInTwoFilesIsReported) {
  const std::string folder = ::testing::TempDir() + "gpu_spec_file_test_folder";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/a.json") << h100_text();
  std::ofstream(folder + "/b.json") << h100_text();
  EXPECT_THAT(error_of(read_device_folder(folder)).at(0).text(),
              HasSubstr("b.json: /recorded_names/value/0: \"NVIDIA H100 80GB HBM3\" is also in "));
}

// Clocks and powers: the formulas by hand, and against stages measured by Perseus (SOSP 2024).

PowerSpec a100() {
  const auto spec = find_gpu_spec("a100-80gb", kDeviceFolder);
  EXPECT_TRUE(spec.has_value());
  return spec ? spec->power : PowerSpec{};
}

TEST(PowerSpec, BelowTheFloorPowerFollowsTheClockAlone) {
  PowerSpec spec;
  spec.full_clock_mhz = 1000;
  spec.voltage_floor_mhz = 500;
  spec.voltage_slope = 1;
  // V(1000) = 1 + 1 x (2 - 1) = 2; V(500) = V(250) = 1.
  EXPECT_DOUBLE_EQ(dynamic_share(spec, 1000), 1);
  EXPECT_DOUBLE_EQ(dynamic_share(spec, 500), 0.5 / 4);
  EXPECT_DOUBLE_EQ(dynamic_share(spec, 250), 0.25 / 4);
}

TEST(PowerSpec, TheClockStretchesWhatMemoryDoesNotBound) {
  EXPECT_DOUBLE_EQ(clock_stretch(0, 0.5), 2);
  EXPECT_DOUBLE_EQ(clock_stretch(1, 0.5), 1);
  EXPECT_DOUBLE_EQ(clock_stretch(0.1, 0.5), 1.9);
  EXPECT_DOUBLE_EQ(clock_stretch(0.3, 1), 1);
}

TEST(PowerSpec, TheHighestStepThatKeepsACapIsTaken) {
  const PowerSpec spec = a100();
  for (double cap = spec.idle_w; cap <= spec.limit_w; cap += 7) {
    const double mhz = clock_under(spec, cap, 0, spec.compute_kernel_w);
    const auto power = [&](double clock) {
      return spec.idle_w + spec.compute_kernel_w * dynamic_share(spec, clock);
    };
    EXPECT_TRUE(mhz == spec.least_clock_mhz || power(mhz) <= cap) << cap;
    EXPECT_TRUE(mhz == spec.full_clock_mhz || power(mhz + spec.clock_step_mhz) > cap) << cap;
  }
}

// The first stage's forward pass: clock, seconds, joules (ml-energy/zeus,
// sosp24_data/emulation/stage_profile/bloom+a100_sxm_bf16.csv; not one of the rows that were
// fitted). Ratios to the second row: at the highest clock the board's limit held the GPU back.
TEST(PowerSpec, AMeasuredStageIsMet) {
  struct Row {
    double mhz, time, power;
  };
  const std::vector<Row> rows{{1290, 1.044, 385}, {1230, 1.090, 340}, {1170, 1.141, 308},
                              {1110, 1.197, 277}, {1050, 1.261, 261}, {990, 1.335, 248},
                              {930, 1.415, 238},  {870, 1.510, 224}};
  const PowerSpec spec = a100();
  const Row& first = rows.front();
  for (const Row& row : rows) {
    const double time = clock_stretch(0.1, row.mhz / first.mhz);
    EXPECT_NEAR(time / (row.time / first.time), 1, 0.01) << row.mhz;
    const double power = spec.idle_w + (first.power - spec.idle_w) *
                                           dynamic_share(spec, row.mhz) /
                                           dynamic_share(spec, first.mhz);
    EXPECT_NEAR(power / row.power, 1, 0.025) << row.mhz;
  }
}

TEST(PowerSpec, EveryDeviceWithPowerReachesItsLimitAtTheFullClock) {
  const auto devices = must(read_device_folder(kDeviceFolder));
  int known = 0;
  for (const DeviceFile& device : devices) {
    const PowerSpec& spec = device.spec.power;
    if (!spec.known()) continue;
    ++known;
    EXPECT_DOUBLE_EQ(spec.idle_w + spec.compute_kernel_w, spec.limit_w) << device.spec.id;
    EXPECT_LT(spec.memory_kernel_w, spec.compute_kernel_w) << device.spec.id;
    EXPECT_LT(spec.voltage_floor_mhz, spec.full_clock_mhz) << device.spec.id;
  }
  EXPECT_EQ(known, 4);
}

// The device files that ship: each loads, and says what the chip is known to be.

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

TEST(DeviceFiles, OccupancyLimitsAreThoseOfTheComputeCapability) {
  for (const DeviceFile& device : shipped_devices()) {
    const GpuSpec& spec = device.spec;
    if (device.spec.id == "mi300x") continue;  // AMD's: below
    ASSERT_TRUE(kOccupancy.contains({spec.compute_major, spec.compute_minor})) << device.spec.id;
    const Occupancy& known = kOccupancy.at({spec.compute_major, spec.compute_minor});
    EXPECT_EQ(spec.sm.max_threads, known.threads) << device.spec.id;
    EXPECT_EQ(spec.sm.max_blocks, known.blocks) << device.spec.id;
    EXPECT_EQ(spec.sm.max_warps, known.warps) << device.spec.id;
    EXPECT_EQ(spec.sm.shared_memory_bytes, known.shared_memory) << device.spec.id;
    EXPECT_EQ(spec.sm.shared_memory_unit_bytes, known.shared_unit) << device.spec.id;
    EXPECT_EQ(spec.sm.shared_memory_reserved_bytes, known.shared_reserve) << device.spec.id;
    EXPECT_EQ(spec.sm.registers, 65536U) << device.spec.id;
    EXPECT_EQ(spec.sm.register_unit, 256U) << device.spec.id;
  }
}

// AMD CDNA 3: 4 SIMDs of 8 waves of 64 threads, 512 KiB of registers, 64 KiB of local data share.
TEST(DeviceFiles, AComputeUnitOfAmdIsAnSmOfWaves) {
  const auto mi300x = must(find_gpu_spec("mi300x", kDeviceFolder));
  EXPECT_EQ(mi300x.sm.warp_size, 64U);
  EXPECT_EQ(mi300x.sm.max_threads, 4U * 8 * 64);
  EXPECT_EQ(mi300x.sm.registers * 4, 512U * 1024);
  EXPECT_EQ(mi300x.sm.shared_memory_bytes, 64U * 1024);
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
  EXPECT_EQ(shipped_devices().size(), sheets.size());
  for (const DeviceFile& device : shipped_devices()) {
    const Sheet& sheet = sheets.at(device.spec.id);
    EXPECT_EQ(device.spec.sm_count, sheet.sms) << device.spec.id;
    EXPECT_EQ(device.spec.dram_bandwidth.value, sheet.bandwidth) << device.spec.id;
    EXPECT_LE(static_cast<double>(device.spec.memory.value), sheet.gigabytes * 1e9)
        << device.spec.id;
    EXPECT_GE(static_cast<double>(device.spec.memory.value), sheet.gigabytes * 0.985e9)
        << device.spec.id;
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
    EXPECT_EQ((*match)->spec.id, id) << recorded;
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
  const auto unknown = error_of(find_gpu_spec("h10x", kDeviceFolder));
  EXPECT_NE(unknown.at(0).message.find("did you mean \"h100\"?"), std::string::npos);
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
    const std::string& id = device.spec.id;
    const bool ours = id == "h100" || id == "h200" || id == "gh200";
    const bool measured = ours || id.starts_with("a100") || id.starts_with("v100");
    const Duration slice = !measured                ? Duration{1'024'000}
                           : id.starts_with("a100") ? Duration{1'900'000}
                           : ours                   ? Duration{2'050'000}
                                                    : Duration{2'100'000};
    const Duration change{!measured ? 50'000 : ours ? 234'000 : 200'000};
    const Duration spread{ours ? 7'000 : 0};
    const Duration client_switch{id == "a100-40gb"   ? 20'500  // fitted to pairs
                                 : id == "a100-80gb" ? 7'400   // to equal clients
                                                     : 0};
    EXPECT_LE(std::chrono::abs(device.spec.time_slice - slice), spread) << id;
    EXPECT_LE(std::chrono::abs(device.spec.context_switch - change), spread) << id;
    EXPECT_EQ(device.spec.context_switch_empty.has_value(), ours) << id;
    EXPECT_EQ(device.spec.client_switch, client_switch) << id;
    EXPECT_GT(device.spec.launch_latency, Duration{0}) << id;
    EXPECT_LE(device.spec.completion_notice, device.spec.sync_latency) << id;
    EXPECT_EQ(device.spec.contention.memory_kernel_memory_boundness, 1.0) << id;
    EXPECT_EQ(device.spec.contention.l2_slowdown, 0.2) << id;
  }
}

// The cluster files that ship, and the faults of others.

std::vector<ClusterFile> shipped_clusters() {
  auto clusters = read_cluster_folder(kConfigFolder + "/clusters");
  if (clusters) return *std::move(clusters);
  for (const Error& error : clusters.error()) ADD_FAILURE() << error.text();
  return {};
}

/// A shipped file with one piece of text replaced, as read; its faults in one string.
std::string faults_after(const std::string& from, const std::string& to) {
  std::string text = read_text_file(kConfigFolder + "/clusters/dgx-a100-80gb.json").value_or("");
  const auto at = text.find(from);
  if (at == std::string::npos) return "not found: " + from;
  text.replace(at, from.size(), to);
  // One file a test: they run side by side.
  const std::string path = testing::TempDir() + "/cluster_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() +
                           ".json";
  std::ofstream(path) << text;
  const auto spec = read_cluster_spec(path);
  std::string out;
  if (!spec) {
    for (const Error& error : spec.error()) out += error.text() + "\n";
  }
  return out;
}

TEST(ClusterFiles, EveryShippedFileLoadsAndNamesADeviceThatShips) {
  const std::vector<ClusterFile> clusters = shipped_clusters();
  EXPECT_GE(clusters.size(), 10U);
  for (const ClusterFile& cluster : clusters) {
    EXPECT_TRUE(find_gpu_spec(cluster.spec.device, kDeviceFolder)) << cluster.id;
  }
}

TEST(ClusterFiles, AClusterIsFoundByIdAndByPath) {
  const auto by_id = must(find_cluster_spec("a100-80gb-800g", kConfigFolder + "/clusters"));
  EXPECT_EQ(by_id.gpus_per_node, 8U);
  EXPECT_EQ(by_id.nics.count, 4U);
  EXPECT_EQ(by_id.nics.bandwidth, BytesPerSecond{24e9});
  EXPECT_TRUE(find_cluster_spec(kConfigFolder + "/clusters/selene.json", ""));
  const auto unknown = error_of(find_cluster_spec("selen", kConfigFolder + "/clusters"));
  EXPECT_NE(unknown.at(0).message.find("did you mean \"selene\"?"), std::string::npos);
}

TEST(ClusterFiles, NodesMayBeOverridden) {
  const auto spec = must(find_cluster_spec("dgx-a100-80gb", kConfigFolder + "/clusters"));
  EXPECT_EQ(with_nodes(spec, 64).gpus(), 512U);
}

// A million up-links that share a leaf's bandwidth made iterations of an hour, without a word.
TEST(ClusterFiles, ALeafHasNoMoreUplinksThanNicsBelowIt) {
  const auto dgx = must(find_cluster_spec("dgx-a100-80gb", kConfigFolder + "/clusters"));
  const std::uint64_t nics = std::uint64_t{dgx.tree.nodes_per_leaf} * dgx.nics.count;
  const auto faults = [](std::uint64_t uplinks) {
    return faults_after("\"fat_tree\": {",
                        R"("fat_tree": {"placement": {"value": "planned", "source": "test"},
                        "uplinks": {"unit": "links", "source": "test", "value": )" +
                            std::to_string(uplinks) + "},");
  };
  EXPECT_EQ(faults(nics), "");
  EXPECT_NE(faults(nics + 1).find("/fat_tree/uplinks: found " + std::to_string(nics + 1) +
                                  "; expected at most " + std::to_string(nics)),
            std::string::npos);
}

TEST(ClusterFiles, FaultsNameThePlaceAndWhatWasExpected) {
  EXPECT_NE(faults_after("\"unit\": \"GPUs\"", "\"unit\": \"NICs\"").find("expected \"GPUs\""),
            std::string::npos);
  EXPECT_NE(faults_after("\"nvswitch\"", "\"nvswitsch\"").find("nvswitch"), std::string::npos);
  EXPECT_NE(faults_after("[\"6.6us\", ", "[").find("for LL, LL128 and Simple"), std::string::npos);
  EXPECT_NE(faults_after("\"nics\"", "\"nic\"").find("a cluster of several nodes has NICs"),
            std::string::npos);
  EXPECT_NE(faults_after("\"oversubscription\"", "\"over\"").find("oversubscription"),
            std::string::npos);
}

}  // namespace
}  // namespace bubblesim::hardware
