// What policies are told of the GPU, from a stand-in of NVML and without one.
#include <gmock/gmock.h>

#include "capture/live/live_plan.hpp"

namespace bubblesim::capture {
namespace {

using testing::HasSubstr;

policy::GpuInfo constants() {
  policy::GpuInfo gpu;
  gpu.name = "a100";
  gpu.sm_count = 108;
  gpu.memory = Bytes{40'000'000'000};
  gpu.time_slice = std::chrono::milliseconds(2);
  return gpu;
}

TEST(GpuFacts, AreTheCardsWhereItSaysThem) {
  const GpuFacts facts = facts_of_gpu(constants(), "0", {}, FAKE_NVML);
  EXPECT_EQ(facts.gpu.name, "H100");
  EXPECT_EQ(facts.gpu.sm_count, 132U);
  EXPECT_EQ(facts.gpu.memory.value, 85'520'809'984U);
  EXPECT_EQ(facts.free, Bytes{80'000'000'000});
  EXPECT_EQ(facts.gpu.time_slice, std::chrono::milliseconds(2));
  EXPECT_THAT(facts.text, HasSubstr("H100, 132 SMs"));
  EXPECT_THAT(facts.text, HasSubstr("slices and bandwidths are those of a100"));
}

TEST(GpuFacts, WhatTheCardDoesNotSayIsTheDevices) {
  const GpuFacts facts = facts_of_gpu(constants(), "1", {}, FAKE_NVML);
  EXPECT_EQ(facts.gpu.sm_count, 108U);
  EXPECT_EQ(facts.gpu.memory.value, 40'000'000'000U);
  EXPECT_EQ(facts.free, std::nullopt);
  EXPECT_THAT(facts.text, HasSubstr("SMs, memory, slices and bandwidths are those of a100"));
}

TEST(GpuFacts, TheCardIsTheFirstThatIsVisibleUnlessOneIsAskedFor) {
  const Variables second{{"CUDA_VISIBLE_DEVICES", "1,0"}};
  EXPECT_EQ(facts_of_gpu(constants(), "", second, FAKE_NVML).gpu.sm_count, 108U);
  EXPECT_EQ(facts_of_gpu(constants(), "GPU-a", second, FAKE_NVML).gpu.sm_count, 132U);
  EXPECT_EQ(facts_of_gpu(constants(), "", {}, FAKE_NVML).gpu.sm_count, 132U);
}

// The stand-in has two cards.
TEST(GpuFacts, SayWhetherProgramsSeeOneGpuOnly) {
  const auto alone = [](const std::string& device, const Variables& environment) {
    return facts_of_gpu(constants(), device, environment, FAKE_NVML).is_only_one;
  };
  EXPECT_FALSE(alone("", {}));
  EXPECT_FALSE(alone("", {{"CUDA_VISIBLE_DEVICES", "1,0"}}));
  EXPECT_TRUE(alone("", {{"CUDA_VISIBLE_DEVICES", "1"}}));
  EXPECT_TRUE(alone("GPU-b", {}));
  EXPECT_TRUE(facts_of_gpu(constants(), "", {}, "/nonexistent/libnvidia-ml.so.1").is_only_one);
}

TEST(GpuFacts, WithoutADriverTheTextSaysWhoseConstantsTheyAre) {
  const GpuFacts facts = facts_of_gpu(constants(), "", {}, "/nonexistent/libnvidia-ml.so.1");
  EXPECT_EQ(facts.gpu.sm_count, 108U);
  EXPECT_THAT(facts.text, HasSubstr("a100, 108 SMs"));
  EXPECT_THAT(facts.text, HasSubstr("--device"));
}

}  // namespace
}  // namespace bubblesim::capture
