// A fake GPU whose constants differ from the base file's, behind real processes: calibration knows
// the base only and must find the others.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/measure/calibrate/calibrate.hpp"
#include "sim/measure/fake_gpu.hpp"
#include "tests/fault.hpp"

namespace bubblesim::measure {
namespace {

hardware::GpuSpec base_device() {
  return must(
      hardware::find_gpu_spec("h100", std::string(BUBBLESIM_SOURCE_DIR) + "/configs/devices"));
}

hardware::GpuSpec real_device() {
  hardware::GpuSpec spec = base_device();
  spec.launch_latency = Duration{1730};
  spec.stream_gap = Duration{910};
  spec.sync_latency = Duration{8420};
  spec.completion_notice = Duration{2910};
  spec.dram_reach = 0.71;
  spec.host_bandwidth.value = 51.3e9;
  spec.time_slice = Duration{1'870'000};
  spec.context_switch = Duration{83'000};
  spec.client_switch = Duration{17'300};
  spec.tpc_sms = 6;
  spec.client_order = hardware::ClientOrder::kEven;
  spec.part = {.dram_saturating_sms = 0.31, .dark_clock_gain = 1.17};
  spec.contention = {.compute_kernel_dram_share = 0.15,
                     .memory_kernel_dram_share = 0.7,
                     .unknown_kernel_dram_share = 0.5,
                     .compute_kernel_issue_share = 0.75,
                     .memory_kernel_issue_share = 0.3,
                     .unknown_kernel_issue_share = 0.45,
                     .compute_kernel_memory_boundness = 0.2,
                     .memory_kernel_memory_boundness = 0.85,
                     .unknown_kernel_memory_boundness = 0.4,
                     .l2_slowdown = 0.35};
  return spec;
}

class ClosedLoop : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("bubblesim_loop." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    fake_ = make_fake_gpu(real_device());
    place_.worker = BUBBLESIM_REPLAY;
    place_.folder = folder_;
    place_.fake = fake_.get();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Calibration run(const std::vector<std::string>& probes) {
    return must(calibrate(base_device(), place_, probes));
  }

  static void expect_near(const Calibration& found, const std::string& key, double truth) {
    for (const CalibratedConstant& constant : found.constants) {
      if (constant.key != key) continue;
      EXPECT_EQ(constant.kept, "") << key;
      EXPECT_NEAR(constant.value, truth, 0.01 * truth) << key;
      return;
    }
    ADD_FAILURE() << key << " is not there";
  }

  std::filesystem::path folder_;
  std::unique_ptr<capture::FakeGpu> fake_;
  capture::RigPlace place_;
};

TEST_F(ClosedLoop, LatenciesAndBandwidthsAreFoundWithinOnePercent) {
  const Calibration found = run({"latencies", "copies"});
  expect_near(found, "launch_latency", 1730);
  expect_near(found, "stream_gap", 910);
  expect_near(found, "sync_latency", 8420);
  expect_near(found, "completion_notice", 2910);
  expect_near(found, "dram_reach", 0.71);
  expect_near(found, "host_bandwidth", 51.3e9);
  EXPECT_EQ(found.spec.launch_latency, Duration{1730});
}

TEST_F(ClosedLoop, TimeSlicesAndSwitchesAreFoundWithinOnePercent) {
  const Calibration found = run({"slices"});
  expect_near(found, "time_slice", 1'870'000);
  expect_near(found, "context_switch", 83'000);
}

TEST_F(ClosedLoop, MpsIsFoundWithinOnePercent) {
  const Calibration found = run({"clients", "sms"});
  expect_near(found, "client_switch", 17'300);
  expect_near(found, "tpc_sms", 6);
}

// How far DRAM bounds the kernels of a class is the base's: `contention` finds it.
TEST_F(ClosedLoop, PartsOfTheSmsAreFoundWithinOnePercent) {
  hardware::GpuSpec bound_alike = real_device();
  bound_alike.contention = base_device().contention;
  fake_ = make_fake_gpu(bound_alike);
  place_.fake = fake_.get();
  const Calibration found = run({"sms", "parts"});
  expect_near(found, "part/dram_saturating_sms", 0.31);
  expect_near(found, "part/dark_clock_gain", 1.17);
}

TEST_F(ClosedLoop, EvenPartsOfTwoClientsAreFound) {
  EXPECT_EQ(run({"orders"}).spec.client_order, hardware::ClientOrder::kEven);
}

TEST_F(ClosedLoop, TheOrderOfArrivalIsFound) {
  hardware::GpuSpec in_line = real_device();
  in_line.client_order = hardware::ClientOrder::kArrival;
  fake_ = make_fake_gpu(in_line);
  place_.fake = fake_.get();
  const Calibration found = run({"orders"});
  ASSERT_EQ(found.constants.size(), 1U);
  EXPECT_EQ(found.constants.front().kept, "");
  EXPECT_EQ(found.spec.client_order, hardware::ClientOrder::kArrival);
}

TEST_F(ClosedLoop, HeldOutSlowdownsArePredictedWithinOnePercent) {
  const Calibration found = run({"contention"});
  ASSERT_TRUE(found.contention);
  EXPECT_GT(found.contention->held_out.count, 100U);
  EXPECT_LT(found.contention->held_out.worst, 0.01);
  EXPECT_GT(found.contention->base.worst, 0.05);
  for (std::size_t i = 0; i < contention_parameters().size(); ++i) {
    const FittedParameter& parameter = found.contention->parameters[i];
    const double truth = real_device().contention.*contention_parameters()[i].value;
    if (parameter.kept.empty()) {
      EXPECT_NEAR(parameter.value, truth, 0.02) << parameter.key;
    }
  }
}

TEST_F(ClosedLoop, AProbeThatCannotRunKeepsTheBase) {
  place_.worker = "/nonexistent/bubblesim_replay";
  const Calibration found = run({"latencies"});
  ASSERT_EQ(found.constants.size(), 4U);
  for (const CalibratedConstant& constant : found.constants) {
    EXPECT_NE(constant.kept, "") << constant.key;
    EXPECT_EQ(constant.value, constant.base);
  }
}

TEST_F(ClosedLoop, AnUnknownProbeIsAFault) {
  const auto found = error_of(calibrate(base_device(), place_, {"latency"}));
  EXPECT_NE(found.text().find("latencies"), std::string::npos);
}

}  // namespace
}  // namespace bubblesim::measure
