// Folders of reports, and which belong together.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "sim/observe/report.hpp"
#include "sim/validate/match_reports.hpp"
#include "sim/validate/measured_summary.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/sim/observe/sample_report.hpp"
#include "tests/unit/sim/validate/measured/sample_figures.hpp"

namespace bubblesim::validate {
namespace {

namespace fs = std::filesystem;

class ReportFolder : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const { temp_.write(name, text); }
  static std::string report(const std::string& config) {
    return R"({"config": ")" + config + R"(", "policies": []})";
  }
  const TempFolder temp_;
  const std::string root_ = temp_.path();
};

TEST_F(ReportFolder, FilesOfAFolderAndConfigAreRepetitions) {
  put("a/results-1.json", report("a"));
  put("a/results-2.json", report("a"));
  put("b/results.json", "[" + report("x") + "," + report("y") + "]");
  put("b/errors.json", "no report");
  const auto groups = must(find_reports(root_));
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].folder, "a");
  EXPECT_EQ(groups[0].repetitions.size(), 2U);
  EXPECT_EQ(groups[1].config, "x");
  EXPECT_EQ(groups[2].config, "y");
}

TEST_F(ReportFolder, AFileMayBeGivenByAnyName) {
  put("run.json", report("a"));
  const auto groups = must(find_reports(root_ + "/run.json"));
  EXPECT_EQ(groups.front().folder, "");
}

TEST_F(ReportFolder, FaultsOfAllFilesAreReported) {
  put("a/results.json", "{");
  put("b/results.json", "{}");
  const auto groups = error_of(find_reports(root_));
  EXPECT_GE(groups.size(), 2U);
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

// What sim/observe writes is what is read back; what is no report is refused with its place.

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  const auto reports = parse_reports(text, "r.json");
  if (reports) return {};
  std::string all;
  for (const Error& error : reports.error()) all += error.text() + "\n";
  return all;
}

TEST(ReportReader, ReadsBackWhatARunWrites) {
  const observe::RunReport report = observe::sample_report();
  const auto read = must(parse_reports(observe::report_json(report), "r.json"));
  ASSERT_EQ(read.size(), 1U);
  const ReportFigures& it = read.front();
  EXPECT_EQ(it.config, report.config);
  EXPECT_EQ(it.device, report.device);
  ASSERT_EQ(it.policies.size(), report.policies.size());
  const PolicyFigures& policy = it.policies.front();
  EXPECT_EQ(policy.policy, "mps");
  EXPECT_EQ(policy.parameters, "filler_percentage=50;priority=training");
  EXPECT_DOUBLE_EQ(*policy.iteration_ms, 250.000001);
  ASSERT_EQ(policy.fillers.size(), 1U);
  const FillerFigures& filler = policy.fillers.front();
  EXPECT_EQ(filler.name, "bert, \"large\"");
  EXPECT_DOUBLE_EQ(*filler.requests_per_s, 2);  // 4 completed in 2 s
  EXPECT_DOUBLE_EQ(*filler.of_own_gpu, 0.1);
  // Latencies 10, 20, 30 and one that is 25 and not done. p50: rank 2 of 4, 20 ms. p95: rank 4,
  // 30 ms, with the unfinished one below it.
  EXPECT_DOUBLE_EQ(filler.latency[0]->value, 20);
  EXPECT_FALSE(filler.latency[0]->lower_bound);
  EXPECT_DOUBLE_EQ(filler.latency[1]->value, 30);
  EXPECT_TRUE(filler.latency[1]->lower_bound);
}

TEST(ReportReader, FewUnfinishedRequestsHardlyMoveAPercentile) {
  // 5 of 1000 had not ended: 0.5 %. p95 may be off by a fifth of 5 % = 1 %, p99 by 0.2 %.
  const auto read = must(parse_reports(
      R"({"config": "a", "policies": [{"policy": "mps", "fillers": [{"name": "f", "latency": {
          "samples_completed": 995, "samples_unfinished": 5,
          "p95": {"value_ns": 5000000, "lower_bound": true},
          "p99": {"value_ns": 6000000, "lower_bound": true}}}]}]})", "r.json"));
  const auto& latency = read.front().policies.front().fillers.front().latency;
  EXPECT_FALSE(latency[1]->lower_bound);
  EXPECT_TRUE(latency[2]->lower_bound);
}

TEST(ReportReader, AMeasuredReportSaysWhereAndWhen) {
  observe::RunReport report = observe::sample_report();
  report.measured.emplace();
  report.measured->place = "fake";
  report.measured->date = "2026-11-22T10:00:00Z";
  report.measured->driver = "580.1";
  const auto read = must(parse_reports(observe::report_json(report), "r.json"));
  EXPECT_EQ(read.front().measured, "fake, 2026-11-22T10:00:00Z, driver 580.1");
}

TEST(ReportReader, AListHoldsSeveralReports) {
  const auto read = must(parse_reports(R"([{"config": "a", "policies": []},
                                           {"config": "b", "policies": []}])", "r.json"));
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[1].config, "b");
  EXPECT_EQ(read[1].place, "r.json#/1");
}

TEST(ReportReader, WhatIsNotMeasuredIsMissingAndNotZero) {
  const auto read = must(parse_reports(
      R"({"config": "a", "policies": [{"policy": "mps",
          "training": {"iteration_mean_ns": 0},
          "fillers": [{"name": "f", "requests_per_s": null, "latency": null}]}]})", "r.json"));
  const PolicyFigures& policy = read.front().policies.front();
  EXPECT_FALSE(policy.iteration_ms) << "no iteration finished";
  EXPECT_FALSE(policy.fillers.front().requests_per_s);
  EXPECT_FALSE(policy.fillers.front().latency[0]);
  EXPECT_FALSE(read.front().alone_iteration_ms);
}

TEST(ReportReader, FaultsNameTheirPlace) {
  EXPECT_THAT(refusal(R"({"policies": []})"), HasSubstr("required key \"config\" is missing"));
  EXPECT_THAT(refusal(R"({"config": 5, "policies": []})"), HasSubstr("r.json: /config: found"));
  EXPECT_THAT(refusal(R"([{"config": "a", "policies": [{"policy": "mps",
      "training": {"iteration_mean_ns": -1}}]}])"),
              HasSubstr("/0/policies/0/training/iteration_mean_ns"));
  EXPECT_THAT(refusal(R"({"config": "a", "policies": [{"policy": "mps", "fillers": [
      {"name": "f", "latency": {"p95": {"value_ns": "5ms"}}}]}]})"),
              HasSubstr("/policies/0/fillers/0/latency/p95/value_ns"));
  EXPECT_THAT(refusal(R"({"config": "a", "policies": [{"policy": "mps", "fillers": 7}]})"),
              HasSubstr("/policies/0/fillers"));
  EXPECT_THAT(refusal(R"({"config": "", "policies": []})"), HasSubstr("empty name"));
}

TEST(ReportReader, NoNameMayComeTwice) {
  EXPECT_THAT(refusal(R"({"config": "a", "policies": [{"policy": "mps"}, {"policy": "mps"}]})"),
              HasSubstr("a second time"));
  EXPECT_THAT(refusal(R"({"config": "a", "policies": [{"policy": "mps",
      "fillers": [{"name": "f"}, {"name": "f"}]}]})"), HasSubstr("\"f\" a second time"));
}

TEST(ReportReader, WhatIsNoReportIsRefused) {
  for (const char* text : {"", "[", "5", "null", "[]", "[1]", "{\"config\": \"a\"",
                           "{\"config\": \"a\", \"policies\": null}", "\xff\xfe",
                           "{\"config\": \"a\", \"config\": \"b\", \"policies\": []}",
                           "{\"config\": \"a\", \"policies\": [{\"policy\": \"p\", "
                           "\"training\": {\"iteration_mean_ns\": 1e999}}]}"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
  EXPECT_NE(refusal(std::string(100'000, '[') + std::string(100'000, ']')), "");
  EXPECT_FALSE(read_reports("/nowhere/results.json"));
}

}  // namespace
}  // namespace bubblesim::validate
