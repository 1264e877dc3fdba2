// The shipped constants against the measured tables, on rows kept for judging. Limits are what is
// reached, with a little room: a change that makes an error grow fails here.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sim/fit/fit_kernels.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_file.hpp"

namespace bubblesim::fit {
namespace {

const std::string kConfigs = BUBBLESIM_SOURCE_DIR "/configs";
const std::string kData = BUBBLESIM_DATA_DIR;

std::vector<KernelErrors> errors_of(const std::string& family, const std::string& file) {
  const auto measured = read_measured_kernels(kData, family);
  const auto efficiency = model::find_efficiency(file, kConfigs + "/efficiency");
  if (!measured || !efficiency) return {};
  MeasuredDevices devices;
  for (const auto& row : measured->rows) {
    if (devices.contains(row.device)) continue;
    auto spec = hardware::find_gpu_spec(row.device, kConfigs + "/devices");
    if (spec) devices.emplace(row.device, *spec);
  }
  return kernel_errors(*measured, devices, *efficiency).value_or(std::vector<KernelErrors>{});
}

double judged(const std::vector<KernelErrors>& errors, const std::string& name) {
  const auto at = std::find_if(errors.begin(), errors.end(), [&](const KernelErrors& e) {
    return e.name == name && e.role == validate::RowRole::kJudge;
  });
  return at == errors.end() ? 1e9 : at->long_rows.mean_absolute;
}

TEST(KernelErrorsA100, stay_where_they_are) {
  if (!std::filesystem::exists(kData + "/microsoft+vidur")) GTEST_SKIP() << "no measured tables";
  const auto errors = errors_of("a100", "a100-80gb");
  EXPECT_LT(judged(errors, "gemm, fp16"), 0.060);
  EXPECT_LT(judged(errors, "elementwise, fp16"), 0.05);
}

TEST(KernelErrorsH100, stay_where_they_are) {
  if (!std::filesystem::exists(kData + "/sitar-lab+NeuSight")) GTEST_SKIP() << "no tables";
  const auto errors = errors_of("h100", "h100");
  EXPECT_LT(judged(errors, "gemm, fp32"), 0.09);
  EXPECT_LT(judged(errors, "elementwise, fp32"), 0.09);
  EXPECT_LT(judged(errors, "softmax, fp32"), 0.11);
  EXPECT_LT(judged(errors, "normalisation, fp32"), 0.11);
  EXPECT_LT(judged(errors, "convolution, tf32"), 0.09);
}

}  // namespace
}  // namespace bubblesim::fit
