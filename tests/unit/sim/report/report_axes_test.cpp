#include "sim/report/report_axes.hpp"

#include <gtest/gtest.h>

namespace bubblesim::report {
namespace {

using Texts = std::vector<std::string>;

std::vector<ReportAxis> axes(const std::vector<std::vector<store::Setting>>& runs) {
  std::vector<const std::vector<store::Setting>*> all;
  for (const auto& settings : runs) all.push_back(&settings);
  return axes_of(all);
}

TEST(ReportAxes, NumbersRiseByValueNotByText) {
  const auto found = axes({{{"/load", "100"}}, {{"/load", "50"}}, {{"/load", "800"}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].values, (Texts{"50", "100", "800"}));
  EXPECT_EQ(found[0].numbers, (std::vector<double>{50, 100, 800}));
  EXPECT_EQ(found[0].place_of(std::vector<store::Setting>{{"/load", "100"}}), 1);
  EXPECT_EQ(found[0].place_of(std::vector<store::Setting>{{"/other", "100"}}), kNoValue);
}

TEST(ReportAxes, SpansOfTimeAreMilliseconds) {
  const auto found = axes({{{"/window", "\"5ms\""}}, {{"/window", "\"500us\""}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].unit, "ms");
  EXPECT_EQ(found[0].numbers, (std::vector<double>{0.5, 5}));
}

TEST(ReportAxes, TextsStandAsFirstSeen) {
  const auto found = axes({{{"/device", "\"v100\""}}, {{"/device", "\"a100\""}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].numbers.empty());
  EXPECT_EQ(found[0].choices, (Texts{"v100", "a100"}));
}

TEST(ReportAxes, ManyNumbersAreOfferedAsRanges) {
  std::vector<std::vector<store::Setting>> runs;
  for (int i = 1; i <= 40; ++i) runs.push_back({{"/x", std::to_string(i)}});
  const auto found = axes(runs);
  ASSERT_EQ(found[0].choices.size(), kAxisRanges);  // of 5 values each
  EXPECT_EQ(found[0].choices[0], "1 to 5");
  EXPECT_EQ(found[0].choices[7], "36 to 40");
  EXPECT_EQ(found[0].choice_of[4], 0);
  EXPECT_EQ(found[0].choice_of[5], 1);
}

TEST(ReportAxes, SeedsAndPoliciesAreNoneButParametersOfPoliciesAre) {
  const auto found = axes({{{"/seed", "1"},
                            {"/policies/0", "\"mps\""},
                            {"/policies/0/parameters/window", "\"5ms\""}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(swept_parameter({found[0].pointer, {}}), "window");
}

}  // namespace
}  // namespace bubblesim::report
