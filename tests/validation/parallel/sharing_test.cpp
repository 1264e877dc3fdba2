// Simulated co-location pairs against measured ones: mean errors must not grow.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/validate/judge_sharing.hpp"
#include "sim/validate/sharing_text.hpp"

namespace bubblesim::validate {
namespace {

// Mean |error| over all rows of a system. Above what is reached by little, so that growth shows;
// the aims are the report's. Under tgs, what the simulator runs is not what was measured (README).
struct Bound {
  const char* system;
  const char* metric;
  double mean_absolute;
};

constexpr std::array<Bound, 11> kBounds{{
    {"mps", "inference_throughput_rel", 0.12},
    {"mps", "training_throughput_rel", 0.035},
    {"mps", "p95_ms", 0.37},
    {"mps_priority", "inference_throughput_rel", 0.05},
    {"mps_priority", "training_throughput_rel", 0.06},
    {"mps_priority", "p95_ms", 0.21},
    {"time_slicing", "inference_throughput_rel", 0.07},
    {"time_slicing", "training_throughput_rel", 0.09},
    {"time_slicing", "p95_ms", 0.11},
    {"tally", "training_throughput_rel", 0.05},
    {"tally", "p95_ms", 0.05},
}};

constexpr std::size_t kThreads = 2;

std::vector<JudgedRow> judge(const std::string& path) {
  const std::string configs = std::string(BUBBLESIM_SOURCE_DIR) + "/configs";
  const policy::Registry policies = policies::builtin_policies();
  auto stage = make_sharing_stage(configs, policies);
  if (!stage) return {};
  auto rows = add_sharing_table(*stage, path, {}, configs);
  if (!rows) return {};
  std::erase_if(*rows, [](const SharingRow& row) {
    return std::none_of(kBounds.begin(), kBounds.end(),
                        [&](const Bound& it) { return row.system == it.system; });
  });
  SharingSetting& setting = stage->settings.begin()->second;
  setting.requests = std::min(setting.requests, 30U);  // half of the report's, for time
  setting.least_length = std::min<Duration>(setting.least_length, std::chrono::seconds(30));
  const auto judged = judge_sharing(*rows, *stage, kThreads, nullptr);
  return judged ? *judged : std::vector<JudgedRow>{};
}

TEST(Sharing, MeanErrorsStayUnderTheirBounds) {
  const std::string path = std::string(BUBBLESIM_VALIDATION_DIR) + "/colocation_a100.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no table at " << path;
  const std::vector<JudgedRow> judged = judge(path);
  ASSERT_FALSE(judged.empty());
  const auto summaries = summarise_sharing(judged);
  std::fputs(sharing_summary_text(summaries).c_str(), stdout);
  for (const Bound& bound : kBounds) {
    const auto found = std::find_if(summaries.begin(), summaries.end(), [&](const auto& it) {
      return it.role == "all" && it.system == bound.system && it.metric == bound.metric;
    });
    ASSERT_NE(found, summaries.end()) << bound.system;
    EXPECT_LE(found->mean_absolute, bound.mean_absolute)
        << bound.system << ", " << bound.metric;
  }
}

}  // namespace
}  // namespace bubblesim::validate
