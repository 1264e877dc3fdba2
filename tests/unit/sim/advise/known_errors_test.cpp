#include "sim/advise/comparison.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "policies/builtin.hpp"
#include "sim/base/csv_table.hpp"

namespace bubblesim::advise {
namespace {

const std::string kSourceFolder = BUBBLESIM_SOURCE_DIR;
const std::string kA100 = "NVIDIA A100-SXM4-40GB";

TEST(known_errors, are_the_figures_of_the_page_on_validation) {
  std::ostringstream page;
  page << std::ifstream(kSourceFolder + "/docs/validation.md").rdbuf();
  const auto table = CsvTable::read(kSourceFolder + "/configs/validation/errors.csv");
  ASSERT_TRUE(table);
  ASSERT_GT(table->rows(), 5U);
  const policy::Registry registry = policies::builtin_policies();
  std::string line;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    const std::string policy(table->text(row, "policy"));
    EXPECT_TRUE(registry.find(policy)) << policy;
    const std::string percent(table->text(row, "error_percent"));
    EXPECT_NE(page.str().find(percent), std::string::npos) << policy << " " << percent;
  }
}

TEST(known_errors, of_a_policy_that_was_not_measured_are_none) {
  const auto none = known_errors(kSourceFolder + "/configs", "specinf", kA100);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  const auto mps = known_errors(kSourceFolder + "/configs", "mps", kA100);
  ASSERT_TRUE(mps);
  ASSERT_EQ(mps->size(), 3U);
  EXPECT_TRUE(mps->front().same_device);
  const auto elsewhere = known_errors(kSourceFolder + "/configs", "mps", "NVIDIA H100 80GB HBM3");
  ASSERT_TRUE(elsewhere);
  EXPECT_FALSE(elsewhere->front().same_device);
}

}  // namespace
}  // namespace bubblesim::advise
