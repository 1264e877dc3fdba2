// The kernel model's attention of steps with prompts and decoding sequences against LLMServingSim's
// profiles of Llama-3.1-8B: what sequences add to a prompt's time, at points that a server has.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <ostream>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/model/kernel_time.hpp"
#include "sim/model/model_spec.hpp"
#include "tests/folders.hpp"
#include "tests/validation/serving/profile_tables.hpp"

namespace bubblesim::step_cost {
namespace {

struct ProfiledGpu {
  std::string folder;
  std::string device;
  double limit;  ///< most mean error, with a little room

  friend std::ostream& operator<<(std::ostream& out, const ProfiledGpu& gpu) {
    return out << gpu.device;
  }
};

class TokensBesidePrompts : public ::testing::TestWithParam<ProfiledGpu> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder())) GTEST_SKIP() << "no " << folder();
  }

  static std::string folder() {
    return kDataFolder + "/casys-kaist+LLMServingSim/profiler/perf/" + GetParam().folder +
           "/meta-llama/Llama-3.1-8B/bf16";
  }
};

/// Attention of `count` tokens with `cached` before each, beside a prompt of `chunk`.
model::KernelWork singles_of(const model::ModelSpec& llama, std::uint32_t chunk,
                             std::uint32_t count, std::uint32_t cached) {
  model::IterationSums sums;
  sums.prompts.add({chunk, 0});
  for (std::uint32_t i = 0; i < count; ++i) sums.singles.add({1, cached - 1});
  sums.tokens = chunk + count;
  sums.rows = 1 + count;
  return model::attention_work(llama, {}, model::Precision::kBf16, sums).back();
}

TEST_P(TokensBesidePrompts, TakeWavesOfBlocks) {
  const auto profile = test::profile_tables(folder());
  ASSERT_TRUE(profile) << profile.error().front().text();
  const RankTables& tables = **profile->of_tensor(1);
  const auto gpu = *hardware::find_gpu_spec(GetParam().device, kConfigFolder + "/devices");
  const auto efficiency = *model::find_efficiency(GetParam().device, kConfigFolder + "/efficiency");
  const auto llama = *model::find_model("llama3-8b", kConfigFolder + "/models");
  double error = 0, error_apart = 0;
  int points = 0;
  Beyond beyond;
  for (const std::uint32_t chunk : {64U, 256U, 512U, 1024U}) {
    for (const std::uint32_t count : {8U, 32U, 64U, 128U}) {
      for (const std::uint32_t cached : {256U, 512U, 1024U}) {
        const auto at = [](auto... values) { return std::array{static_cast<double>(values)...}; };
        const double prompt = tables.prefill.interpolated(at(chunk, 0), beyond);
        const double together = tables.mixed.interpolated(at(chunk, 0, count, cached), beyond);
        const auto off = [&](const model::KernelWork& work) {
          const double us = 1e6 * to_seconds(time_kernel(work, gpu, efficiency).duration);
          return std::abs((prompt + us) / together - 1);
        };
        model::KernelWork work = singles_of(llama, chunk, count, cached);
        ASSERT_EQ(work.prompt_queries, chunk);
        error += off(work);
        work.prompt_queries = 0;
        error_apart += off(work);
        ++points;
      }
    }
  }
  error /= points;
  error_apart /= points;
  std::printf("%s: %.1f %%, as a kernel of its own %.1f %%\n", GetParam().device.c_str(),
              100 * error, 100 * error_apart);
  EXPECT_LT(error, GetParam().limit);
  EXPECT_GT(error_apart, 2 * error);
}

INSTANTIATE_TEST_SUITE_P(Gpus, TokensBesidePrompts,
                         ::testing::Values(ProfiledGpu{"RTX4090", "rtx4090", 0.13},
                                           ProfiledGpu{"RTXPRO6000", "rtxpro6000", 0.095}),
                         [](const auto& tested) { return tested.param.device; });

}  // namespace
}  // namespace bubblesim::step_cost
