// What sim/observe writes is what is read back; what is no report is refused with its place.
#include "sim/validate/report_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/observe/report.hpp"
#include "tests/unit/sim/observe/sample_report.hpp"

namespace bubblesim::validate {
namespace {

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
  const auto read = parse_reports(observe::report_json(report), "r.json");
  ASSERT_TRUE(read) << read.error().front().text();
  ASSERT_EQ(read->size(), 1U);
  const ReportFigures& it = read->front();
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
  const auto read = parse_reports(
      R"({"config": "a", "policies": [{"policy": "mps", "fillers": [{"name": "f", "latency": {
          "samples_completed": 995, "samples_unfinished": 5,
          "p95": {"value_ns": 5000000, "lower_bound": true},
          "p99": {"value_ns": 6000000, "lower_bound": true}}}]}]})", "r.json");
  ASSERT_TRUE(read);
  const auto& latency = read->front().policies.front().fillers.front().latency;
  EXPECT_FALSE(latency[1]->lower_bound);
  EXPECT_TRUE(latency[2]->lower_bound);
}

TEST(ReportReader, AMeasuredReportSaysWhereAndWhen) {
  observe::RunReport report = observe::sample_report();
  report.measured.emplace();
  report.measured->place = "fake";
  report.measured->date = "2026-11-22T10:00:00Z";
  report.measured->driver = "580.1";
  const auto read = parse_reports(observe::report_json(report), "r.json");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->front().measured, "fake, 2026-11-22T10:00:00Z, driver 580.1");
}

TEST(ReportReader, AListHoldsSeveralReports) {
  const auto read = parse_reports(R"([{"config": "a", "policies": []},
                                      {"config": "b", "policies": []}])", "r.json");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[1].config, "b");
  EXPECT_EQ((*read)[1].place, "r.json#/1");
}

TEST(ReportReader, WhatIsNotMeasuredIsMissingAndNotZero) {
  const auto read = parse_reports(
      R"({"config": "a", "policies": [{"policy": "mps",
          "training": {"iteration_mean_ns": 0},
          "fillers": [{"name": "f", "requests_per_s": null, "latency": null}]}]})", "r.json");
  ASSERT_TRUE(read);
  const PolicyFigures& policy = read->front().policies.front();
  EXPECT_FALSE(policy.iteration_ms) << "no iteration finished";
  EXPECT_FALSE(policy.fillers.front().requests_per_s);
  EXPECT_FALSE(policy.fillers.front().latency[0]);
  EXPECT_FALSE(read->front().alone_iteration_ms);
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
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_NE(refusal(deep), "");
  EXPECT_FALSE(read_reports("/nowhere/results.json"));
}

}  // namespace
}  // namespace bubblesim::validate
