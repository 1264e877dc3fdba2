// Which cells are judged.
#include "sim/validate/measured_roles.hpp"

#include <gtest/gtest.h>

#include "sim/validate/measured_summary.hpp"
#include "tests/unit/sim/validate/measured/sample_figures.hpp"

namespace bubblesim::validate {
namespace {

std::vector<MatchedReports> two_configs() {
  return {{"a", "a", {}, {}}, {"low/b", "b", {}, {}}};
}

TEST(MeasuredRoles, EverythingIsJudgedUnlessTheTableSaysFit) {
  const auto matched = two_configs();
  const auto roles = MeasuredRoles::parse("config,policy,role\na,,fit\na,tgs,judge\nb,mps,fit\n",
                                          "roles.csv", matched);
  ASSERT_TRUE(roles) << roles.error().text();
  EXPECT_EQ(roles->role(matched[0], "mps"), RowRole::kFit);
  EXPECT_EQ(roles->role(matched[0], "alone"), RowRole::kFit);
  EXPECT_EQ(roles->role(matched[0], "tgs"), RowRole::kJudge) << "the last rule counts";
  EXPECT_EQ(roles->role(matched[1], "mps"), RowRole::kFit) << "by name, in any folder";
  EXPECT_EQ(roles->role(matched[1], "tgs"), RowRole::kJudge);
  EXPECT_EQ(MeasuredRoles{}.role(matched[0], "mps"), RowRole::kJudge);
}

TEST(MeasuredRoles, NamesOnTheCommandLineAreFits) {
  const auto matched = two_configs();
  MeasuredRoles roles;
  ASSERT_TRUE(roles.add_fit("a:mps", matched));
  ASSERT_TRUE(roles.add_fit("low/b", matched));
  EXPECT_EQ(roles.role(matched[0], "mps"), RowRole::kFit);
  EXPECT_EQ(roles.role(matched[0], "tgs"), RowRole::kJudge);
  EXPECT_EQ(roles.role(matched[1], "tgs"), RowRole::kFit);
  EXPECT_FALSE(roles.add_fit("c", matched));
}

TEST(MeasuredRoles, FaultsOfTheTableNameTheLine) {
  const auto matched = two_configs();
  const auto why = [&](const char* text) {
    const auto roles = MeasuredRoles::parse(text, "roles.csv", matched);
    return roles ? std::string() : roles.error().text();
  };
  EXPECT_NE(why("config,role\na,fit\n").find("policy"), std::string::npos);
  EXPECT_NE(why("config,policy,role\na,mps,train\n").find("line 2: role"), std::string::npos);
  EXPECT_NE(why("config,policy,role\na,mps,fit\naa,mps,fit\n").find("line 3"), std::string::npos);
  EXPECT_NE(why(""), "");
  EXPECT_NE(why("config,policy,role\na,fit\n"), "");
  EXPECT_FALSE(MeasuredRoles::read("/nowhere.csv", matched));
}

TEST(MeasuredRoles, AFitIsSummarisedApartAndOrdersNothing) {
  const std::vector<ReportGroup> left = {
      group("", {figures("a", {policy("mps", 12, 60), policy("tgs", 11, 50)})})};
  const std::vector<ReportGroup> right = {
      group("", {figures("a", {policy("mps", 10, 60), policy("tgs", 11, 50)})})};
  const auto matched = match_reports(left, right);
  MeasuredRoles roles;
  ASSERT_TRUE(roles.add_fit("a:mps", matched));
  const auto cells = compare_measured(matched, roles);
  std::size_t fits = 0;
  for (const MeasuredSummary& summary : summarise_measured(cells)) {
    if (summary.metric != MeasuredMetric::kIteration || !summary.policy.empty()) continue;
    EXPECT_EQ(summary.rows, 1U);
    EXPECT_NEAR(summary.mean_absolute, summary.role == RowRole::kFit ? 20 : 0, 1e-9);
    fits += summary.role == RowRole::kFit ? 1 : 0;
  }
  EXPECT_EQ(fits, 1U);
  EXPECT_TRUE(order_measured(cells, 0.01).empty()) << "one judged policy has no order";
}

}  // namespace
}  // namespace bubblesim::validate
