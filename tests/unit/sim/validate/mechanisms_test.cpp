// Mechanisms that are left out, and what an ablation tells.
#include "sim/validate/mechanisms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace bubblesim::validate {
namespace {

SharingStage one_machine() {
  SharingStage stage;
  hardware::GpuSpec& gpu = stage.machines["gpu"].gpu;
  gpu.client_switch = Duration{7};
  gpu.part = {0.4, 1.2};
  return stage;
}

TEST(Mechanisms, OneIsLeftOutOfAllDevices) {
  SharingStage stage = one_machine();
  ASSERT_TRUE(leave_out(stage, "client_switch"));
  EXPECT_EQ(stage.machines.at("gpu").gpu.client_switch, Duration{});
  EXPECT_EQ(stage.machines.at("gpu").gpu.part.dark_clock_gain, 1.2) << "no other is";
}

TEST(Mechanisms, EachHasANameOfItsOwnAndCanBeLeftOut) {
  std::vector<std::string_view> names;
  for (const Mechanism& mechanism : sharing_mechanisms()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), mechanism.name), 0) << mechanism.name;
    names.push_back(mechanism.name);
    SharingStage stage = one_machine();
    EXPECT_TRUE(leave_out(stage, mechanism.name));
  }
}

TEST(Mechanisms, AnUnknownOneIsAFaultWithTheNearestName) {
  SharingStage stage = one_machine();
  const auto found = leave_out(stage, "arrivalorder");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text(), testing::HasSubstr("arrival_order"));
}

TEST(Mechanisms, AnAblationTellsBothErrors) {
  const std::string text =
      ablation_text({{"arrival_order", "pairs", "mps", "p95_ms", 6, 0.2, 0.45}});
  EXPECT_THAT(text, testing::HasSubstr("arrival_order; without it: equal"));
  EXPECT_THAT(text, testing::HasSubstr("6 rows   20.0% ->   45.0%"));
}

}  // namespace
}  // namespace bubblesim::validate
