// Faulty device files: each fault is found, with its place.
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/hardware/power_spec.hpp"
#include "tests/folders.hpp"

namespace bubblesim::hardware {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string h100_text() {
  std::ifstream in(std::string(BUBBLESIM_SOURCE_DIR) + "/configs/devices/h100.json");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
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
  const auto devices = read_device_folder(folder);
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().at(0).text(),
              HasSubstr("b.json: /recorded_names/value/0: \"NVIDIA H100 80GB HBM3\" is also in "));
}

// Clocks and powers: the formulas by hand, and against stages measured by Perseus (SOSP 2024).

PowerSpec a100() {
  const auto spec = read_gpu_spec(std::string(kDeviceFolder) + "/a100-80gb.json");
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
  const auto devices = read_device_folder(kDeviceFolder);
  ASSERT_TRUE(devices.has_value());
  int known = 0;
  for (const DeviceFile& device : *devices) {
    const PowerSpec& spec = device.spec.power;
    if (!spec.known()) continue;
    ++known;
    EXPECT_DOUBLE_EQ(spec.idle_w + spec.compute_kernel_w, spec.limit_w) << device.id;
    EXPECT_LT(spec.memory_kernel_w, spec.compute_kernel_w) << device.id;
    EXPECT_LT(spec.voltage_floor_mhz, spec.full_clock_mhz) << device.id;
  }
  EXPECT_EQ(known, 4);
}

}  // namespace
}  // namespace bubblesim::hardware
