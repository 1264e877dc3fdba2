#include "sim/measure/calibrate/calibrate.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sim/hardware/gpu_spec_file.hpp"

namespace bubblesim::measure {
namespace {

const std::string kBase = std::string(BUBBLESIM_SOURCE_DIR) + "/configs/devices/h100.json";

Calibration calibration() {
  Calibration out;
  out.constants = {
      {"launch_latency", ConstantUnit::kNanoseconds, 1260, 1411.4, {120, 1400, 1411.4, 1420}, ""},
      {"stream_gap", ConstantUnit::kNanoseconds, 1245, 1245, {3, 1, 2, 3}, "3 measurements"},
      {"dram_reach", ConstantUnit::kPeakShare, 0.8362, 0.8765432,
       {16, 0.8712, 0.8765432, 0.8801}, ""},
      {"tpc_sms", ConstantUnit::kSms, 2, 4, {12, 4, 4, 4}, ""},
      {"contention/l2_slowdown", ConstantUnit::kShare, 0.2, 0.312345, {99, 0.3, 0.312345, 0.33},
       ""}};
  return out;
}

CheckedResult<hardware::DeviceFile> read_back(const std::string& text) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("calibrated." + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << text;
  auto device = hardware::read_device_file(path);
  (void)std::remove(path.c_str());
  return device;
}

TEST(CalibratedFile, ReadsBackWithTheMeasuredConstantsAndTheBasesOthers) {
  const CalibrationOrigin origin{"2026-11-22", "NVIDIA H100 80GB HBM3", "580.1", false};
  const auto text = calibrated_device_text(kBase, calibration(), origin, std::nullopt);
  ASSERT_TRUE(text) << text.error().text();
  const auto device = read_back(*text);
  ASSERT_TRUE(device) << device.error().front().text();
  EXPECT_EQ(device->spec.launch_latency, Duration{1411});
  EXPECT_EQ(device->spec.stream_gap, Duration{1245});
  EXPECT_EQ(device->spec.dram_reach, 0.8765);
  EXPECT_NE(text->find("n=16, quartiles 0.8712 to 0.8801"), std::string::npos);
  EXPECT_EQ(device->spec.tpc_sms, 4U);
  EXPECT_EQ(device->spec.contention.l2_slowdown, 0.3123);
  EXPECT_EQ(device->spec.contention.compute_kernel_dram_share, 0.2);
  EXPECT_EQ(device->recorded_names.size(), 1U);
  EXPECT_NE(text->find("measured: bubblesim calibrate, 2026-11-22, NVIDIA H100 80GB HBM3, driver "
                       "580.1, n=120, quartiles 1.4us to 1.42us"),
            std::string::npos);
}

TEST(CalibratedFile, AnEmptySwitchCostsNoMoreThanTheMeasuredOne) {
  // The base has 152 us.
  Calibration measured = calibration();
  measured.constants.push_back(
      {"context_switch", ConstantUnit::kNanoseconds, 227e3, 1e5, {9, 1e5, 1e5, 1e5}, ""});
  measured.spec.context_switch = Duration{100'000};
  measured.spec.context_switch_empty = Duration{152'000};
  const auto text = calibrated_device_text(kBase, measured, {}, std::nullopt);
  ASSERT_TRUE(text);
  const auto device = read_back(*text);
  ASSERT_TRUE(device) << device.error().front().text();
  EXPECT_EQ(device->spec.context_switch, Duration{100'000});
  EXPECT_FALSE(device->spec.context_switch_empty);
}

TEST(CalibratedFile, AFakeGpusConstantsSayThatTheyAre) {
  const CalibrationOrigin origin{"2026-11-22", "a device", "", true};
  const auto text =
      calibrated_device_text(kBase, calibration(), origin, std::vector<std::string>{"a name"});
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("bubblesim calibrate --fake, 2026-11-22, a device, n=120"),
            std::string::npos);
  const auto device = read_back(*text);
  ASSERT_TRUE(device);
  EXPECT_EQ(device->recorded_names, std::vector<std::string>{"a name"});
  EXPECT_EQ(device->spec.name, "a device");
}

TEST(CalibratedFile, ResidualsAreARowACell) {
  Calibration calibration;
  calibration.cells.push_back({{program::KernelClass::kMemory, 66},
                       {{program::KernelClass::kCompute, 132}},
                       {10, 1.2, 1.25, 1.3},
                       true});
  calibration.contention.emplace().predicted = {1.0};
  const std::string text = residuals_csv(calibration);
  EXPECT_NE(text.find("memory,66,compute,132,,,10,1.25000,1.20000,1.30000,1.00000,-0.20000,1\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace bubblesim::measure
