// Whole servers against measured ones: LLMServingSim's runs of vLLM 0.19 with Llama-3.1-8B. Limits
// are what is reached, with a little room; docs/validation.md says what does not fit.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <ostream>

#include "sim/step_cost/profile_folder.hpp"
#include "sim/validate/serving/judge_serving.hpp"
#include "tests/folders.hpp"

namespace bubblesim::validate {
namespace {

const std::string kRuns = kDataFolder + "/casys-kaist+LLMServingSim/";
constexpr const char* kModel = "Llama-3.1-8B";

struct ServerLimits {
  std::string gpu;
  double tables;  ///< most mean error with layer tables
  double model;   ///< with the kernel model

  friend std::ostream& operator<<(std::ostream& out, const ServerLimits& limits) {
    return out << limits.gpu;
  }
};

class MeasuredServers : public ::testing::TestWithParam<ServerLimits> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder())) GTEST_SKIP() << "no " << folder();
  }

  std::string folder() const { return kRuns + "bench/examples/" + GetParam().gpu + "/" + kModel; }

  double mean_error(std::optional<step_cost::LayerTables> layers) const {
    const auto bundle = read_serving_bundle(folder());
    EXPECT_TRUE(bundle) << bundle.error().text();
    const auto judged = judge_bundle(*bundle, {kConfigFolder, "vllm-0.19", std::move(layers)});
    EXPECT_TRUE(judged) << judged.error().front().text();
    EXPECT_EQ(judged->figures.size(), 15U);
    EXPECT_EQ(judged->load.counts.finished, bundle->requests.size());
    std::printf("%s: %.2f %%\n", GetParam().gpu.c_str(), 100 * judged->errors.mean_absolute);
    return judged->errors.mean_absolute;
  }
};

TEST_P(MeasuredServers, AreMetWithLayerTables) {
  const auto profile = step_cost::read_profile_folder(
      kRuns + "profiler/perf/" + GetParam().gpu + "/meta-llama/" + kModel + "/bf16");
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_LT(mean_error(profile->tables), GetParam().tables);
}

TEST_P(MeasuredServers, AreMetByTheKernelModel) {
  EXPECT_LT(mean_error(std::nullopt), GetParam().model);
}

INSTANTIATE_TEST_SUITE_P(Gpus, MeasuredServers,
                         ::testing::Values(ServerLimits{"RTX4090", 0.055, 0.03},
                                           ServerLimits{"RTXPRO6000", 0.013, 0.065}),
                         [](const auto& tested) { return tested.param.gpu; });

}  // namespace
}  // namespace bubblesim::validate
