// What the iteration times of recorded jobs depend on: laws, and counterfactuals of busy GPUs.
#include <gtest/gtest.h>

#include "tests/validation/sensitivity_table.hpp"

#include "tests/folders.hpp"

namespace bubblesim::validation {
namespace {

class Sensitivity : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (has_data(kDataFolder)) jobs = all_sensitivities(kDataFolder);
  }
  void SetUp() override {
    if (!has_data(kDataFolder)) GTEST_SKIP() << "no data folder at " << kDataFolder;
  }
  static inline std::vector<JobSensitivities> jobs;
};

// A call that no longer waits returns without the lag of one that did: a trifle beyond the law.
constexpr double kTrifle = 0.01;

TEST_F(Sensitivity, adds_up_to_at_most_one_on_every_job) {
  ASSERT_FALSE(jobs.empty());
  for (const JobSensitivities& job : jobs) {
    if (!job.fault.empty()) continue;
    const traces::Sensitivities& found = job.found;
    for (const double value : {found.kernels, found.copies, found.link, found.host}) {
      EXPECT_GE(value, 0) << job.name;
      EXPECT_LE(value, 1) << job.name;
    }
    EXPECT_GE(found.rest(), -kTrifle) << job.name;
  }
}

// Kernels alone may leave the hosts as long as they were, where these were nearly as long.
TEST_F(Sensitivity, a_gpu_that_is_busy_with_its_own_kernels_finishes_a_third_sooner) {
  std::size_t busy = 0;
  for (const JobSensitivities& job : jobs) {
    if (!job.fault.empty() || job.shares.own < 0.9) continue;
    ++busy;
    EXPECT_LE(job.with_both_twice, 2.0 / 3) << job.name;
    if (job.found.host + job.found.rest() < 1.0 / 3) {
      EXPECT_GE(job.found.kernels, 2.0 / 3) << job.name;
    }
  }
  EXPECT_GE(busy, 3U);
}

}  // namespace
}  // namespace bubblesim::validation
