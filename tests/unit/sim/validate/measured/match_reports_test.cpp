// Folders of reports, and which belong together.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/validate/match_reports.hpp"
#include "sim/validate/measured_roles.hpp"
#include "sim/validate/measured_summary.hpp"
#include "tests/unit/sim/validate/measured/sample_figures.hpp"

namespace bubblesim::validate {
namespace {

namespace fs = std::filesystem;

class ReportFolder : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "report_folder_" + std::to_string(getpid()) + "_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name) << text;
  }
  static std::string report(const std::string& config) {
    return R"({"config": ")" + config + R"(", "policies": []})";
  }
  std::string root_;
};

TEST_F(ReportFolder, FilesOfAFolderAndConfigAreRepetitions) {
  put("a/results-1.json", report("a"));
  put("a/results-2.json", report("a"));
  put("b/results.json", "[" + report("x") + "," + report("y") + "]");
  put("b/errors.json", "no report");
  const auto groups = find_reports(root_);
  ASSERT_TRUE(groups) << groups.error().front().text();
  ASSERT_EQ(groups->size(), 3U);
  EXPECT_EQ((*groups)[0].folder, "a");
  EXPECT_EQ((*groups)[0].repetitions.size(), 2U);
  EXPECT_EQ((*groups)[1].config, "x");
  EXPECT_EQ((*groups)[2].config, "y");
}

TEST_F(ReportFolder, AFileMayBeGivenByAnyName) {
  put("run.json", report("a"));
  const auto groups = find_reports(root_ + "/run.json");
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->front().folder, "");
}

TEST_F(ReportFolder, FaultsOfAllFilesAreReported) {
  put("a/results.json", "{");
  put("b/results.json", "{}");
  const auto groups = find_reports(root_);
  ASSERT_FALSE(groups);
  EXPECT_GE(groups.error().size(), 2U);
  fs::remove_all(root_ + "/a");
  fs::remove_all(root_ + "/b");
  EXPECT_FALSE(find_reports(root_)) << "an empty folder";
  EXPECT_FALSE(find_reports(root_ + "/none"));
}

TEST(MatchReports, AConfigOfOneFolderMeetsItsRepetitionsInAll) {
  const std::vector<ReportGroup> simulated = {group("s", {figures("a", {})})};
  const std::vector<ReportGroup> measured = {group("m/1", {figures("a", {})}),
                                             group("m/2", {figures("a", {})})};
  const auto matched = match_reports(simulated, measured);
  ASSERT_EQ(matched.size(), 1U);
  EXPECT_EQ(matched[0].label, "a");
  EXPECT_EQ(matched[0].simulated.size(), 1U);
  EXPECT_EQ(matched[0].measured.size(), 2U);
}

TEST(MatchReports, AConfigOfSeveralFoldersIsMatchedByFolder) {
  const std::vector<ReportGroup> simulated = {group("low", {figures("a", {})}),
                                              group("high", {figures("a", {})})};
  const std::vector<ReportGroup> measured = {group("high", {figures("a", {})}),
                                             group("other", {figures("a", {})})};
  const auto matched = match_reports(simulated, measured);
  ASSERT_EQ(matched.size(), 3U);
  EXPECT_EQ(matched[0].label, "low/a");
  EXPECT_TRUE(matched[0].measured.empty());
  EXPECT_EQ(matched[1].label, "high/a");
  EXPECT_EQ(matched[1].measured.size(), 1U);
  EXPECT_EQ(matched[2].label, "other/a");
  EXPECT_TRUE(matched[2].simulated.empty());
}

// Which cells are judged.

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
