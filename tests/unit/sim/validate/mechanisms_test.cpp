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

policy::PolicySpec policy_that_demands(const char* name, policy::SystemFeature feature) {
  policy::PolicySpec out;
  out.name = name;
  out.demands = {{feature}};
  return out;
}

std::vector<std::string_view> what_touches(const SharingRow& row) {
  policy::Registry policies;
  policies.add(policy_that_demands("mps", policy::SystemFeature::kMps));
  policies.add(policy_that_demands("turns", policy::SystemFeature::kTimeSlicing));
  SharingStage stage = one_machine();
  stage.policies = &policies;
  stage.settings["t"].systems = {
      {"mps", "mps", {}, {}}, {"turns", "turns", {}, {}}, {"other", "nobody's", {}, {}}};
  std::vector<std::string_view> out;
  for (const Mechanism& mechanism : sharing_mechanisms()) {
    if (mechanism.touches(row, stage)) out.push_back(mechanism.name);
  }
  return out;
}

TEST(Mechanisms, TouchOnlyRowsWhoseClientsShareInTheirWay) {
  using testing::ElementsAre;
  SharingRow row;
  row.table = "t";
  row.system = "mps";
  row.clients.resize(2);
  EXPECT_THAT(what_touches(row), ElementsAre("arrival_order", "client_switch", "contention", "l2",
                                             "dram_reach"));
  row.clients.front().pace = Pace::kEven;
  row.system = "turns";
  EXPECT_THAT(what_touches(row), ElementsAre("long_slices", "bursts"));
  row.clients.resize(1);
  row.clients.front().pace = Pace::kLoop;
  row.sm_percentage = 50;
  EXPECT_THAT(what_touches(row), ElementsAre("contention", "dram_reach", "dram_saturation",
                                             "dark_clock"));
}

TEST(Mechanisms, AllMayTouchARowWhosePolicyIsNotKnown) {
  SharingRow row;
  row.table = "t";
  row.system = "other";
  row.clients.resize(2);
  row.partition = 3;
  EXPECT_EQ(what_touches(row).size(), 8u) << "but bursts: no requests";
}

TEST(Mechanisms, AnAblationTellsBothErrors) {
  const std::string text =
      ablation_text({{"arrival_order", "pairs", "mps", "p95_ms", 6, 0.2, 0.45}});
  EXPECT_THAT(text, testing::HasSubstr("arrival_order; without it: equal"));
  EXPECT_THAT(text, testing::HasSubstr("p95_ms     6    20.0%    45.0%"));
}

}  // namespace
}  // namespace bubblesim::validate
