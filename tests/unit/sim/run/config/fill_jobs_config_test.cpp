// Fill jobs, instances and shares of SMs in a run config.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/run/config/config_text.hpp"

namespace bubblesim::run {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// The first filler of the valid config, changed.
CheckedResult<RunConfig> with(const std::string& patch) {
  Json json = valid_config();
  json["fillers"][0].merge_patch(Json::parse(patch));
  return parse(json);
}

std::string fault_of(const std::string& patch) {
  const auto config = with(patch);
  EXPECT_FALSE(config);
  if (config) return "";
  EXPECT_EQ(config.error().size(), 1U);
  return config.error().front().text();
}

TEST(FillJobsConfig, AListHoldsJobsOfTheirOwn) {
  const auto config = with(R"({"mode": "jobs", "jobs": [
      {"requests": 1000}, {"requests": 5, "submitted": "2s", "deadline": "60s"}]})");
  ASSERT_TRUE(config) << config.error().front().text();
  const FillerConfig& filler = config->fillers.front();
  EXPECT_EQ(filler.mode, observe::FillerMode::kJobs);
  ASSERT_EQ(filler.jobs.size(), 2U);
  EXPECT_EQ(filler.jobs[0].requests, 1000U);
  EXPECT_EQ(filler.jobs[0].submitted, 0s);
  EXPECT_EQ(filler.jobs[0].deadline, std::nullopt);
  EXPECT_EQ(filler.jobs[1].submitted, 2s);
  EXPECT_EQ(filler.jobs[1].deadline, Duration{60s});
}

TEST(FillJobsConfig, AnObjectIsSubmittedAgainAndAgain) {
  const auto config = with(R"({"mode": "jobs", "jobs":
      {"requests": 10, "count": 3, "submitted": "1s", "every": "500ms", "deadline": "4s"}})");
  ASSERT_TRUE(config) << config.error().front().text();
  const auto& jobs = config->fillers.front().jobs;
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(jobs[0].submitted, 1s);
  EXPECT_EQ(jobs[2].submitted, 2s);
  EXPECT_EQ(jobs[2].deadline, Duration{4s});
}

TEST(FillJobsConfig, InstancesAndSharesAreRead) {
  const auto config = with(R"({"instances": 2, "sm_request": 0.3, "sm_limit": 0.6})");
  ASSERT_TRUE(config) << config.error().front().text();
  EXPECT_EQ(config->fillers[0].instances, 2U);
  EXPECT_EQ(config->fillers[0].sm_request, 0.3);
  EXPECT_EQ(config->fillers[0].sm_limit, 0.6);
  EXPECT_EQ(config->fillers[1].instances, std::nullopt);
  EXPECT_EQ(role_of(config->fillers[0]), policy::Role::kOffline);
  EXPECT_EQ(role_of(config->fillers[1]), policy::Role::kOnline);
}

TEST(FillJobsConfig, AFillerMayTrain) {
  const auto config = with(R"({"program": {"trace": null, "train": {
      "model": "bert-base", "plan": {"global_batch": 8, "micro_batch": 8}, "cluster": "c"}}})");
  ASSERT_TRUE(config) << config.error().front().text();
  EXPECT_EQ(std::get<TrainProgram>(config->fillers[0].program).names.model, "bert-base");
  EXPECT_EQ(role_of(config->fillers[0]), policy::Role::kTraining);
}

TEST(FillJobsConfig, FaultsHaveTheirPlace) {
  EXPECT_THAT(fault_of(R"({"mode": "jobs"})"), HasSubstr("jobs"));
  EXPECT_THAT(fault_of(R"({"mode": "jobs", "jobs": []})"), HasSubstr("at least one job"));
  EXPECT_THAT(fault_of(R"({"mode": "jobs", "jobs": [{"requests": 0}]})"),
              HasSubstr("/fillers/0/jobs/0/requests"));
  EXPECT_THAT(fault_of(R"({"mode": "jobs", "jobs": {"requests": 1}})"), HasSubstr("count"));
  EXPECT_THAT(fault_of(R"({"mode": "jobs", "jobs": [{"requests": 1}], "instances": 1})"),
              HasSubstr("one by one"));
  EXPECT_THAT(fault_of(R"({"mode": "jobs", "jobs": [{"requests": 1}], "max_wait": "1ms"})"),
              HasSubstr("only online fillers"));
  EXPECT_THAT(fault_of(R"({"jobs": [{"requests": 1}]})"), HasSubstr("only fillers of mode"));
  EXPECT_THAT(fault_of(R"({"sm_request": 0.5, "sm_limit": 0.4})"), HasSubstr("sm_limit"));
  EXPECT_THAT(fault_of(R"({"mode": "jobs", "jobs": {"requests": 1, "count": 2,
                           "every": "8760h"}})"),
              HasSubstr("beyond a year"));
}

TEST(FillJobsConfig, MoreInstancesThanGpusAreAFault) {
  const auto config = with(R"({"instances": 3, "gpus": [0, 1]})");
  ASSERT_TRUE(config);
  const Errors faults = check_ranks(*config, {0, 1, 2, 3});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults.front().place, "/fillers/0/instances");
}

}  // namespace
}  // namespace bubblesim::run
