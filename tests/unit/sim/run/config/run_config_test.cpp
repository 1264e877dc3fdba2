#include <gmock/gmock.h>

#include "policies/builtin.hpp"
#include "sim/run/run_config.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/run/config/config_text.hpp"

namespace bubblesim::run {
namespace {

using std::chrono::milliseconds, std::chrono::seconds;

std::string texts(const Errors& errors) {
  std::string all;
  for (const Error& error : errors) all += error.text() + '\n';
  return all;
}

class RunConfigTest : public ::testing::Test {
 protected:
  Json json = valid_config();
};

TEST_F(RunConfigTest, WhatIsNotGivenHasItsDefault) {
  const auto config = must(parse(valid_config()));
  EXPECT_EQ(config.seed, 1U);
  EXPECT_FALSE(config.device);
  EXPECT_EQ(config.duration, seconds{2});
  EXPECT_FALSE(config.iterations);
  EXPECT_EQ(config.warmup, Duration::zero());
  EXPECT_EQ(config.training.jitter_cv, 0);
  EXPECT_EQ(config.training.iterations, traces::IterationChoice{});
  const FillerConfig& filler = config.fillers[0];
  EXPECT_FALSE(filler.gpus);
  EXPECT_EQ(filler.batching.requests_per_pass, 1U);
  EXPECT_EQ(filler.batching.max_batch, 1U);
  EXPECT_EQ(filler.batching.batch_cost, 1);
  EXPECT_FALSE(filler.arrivals);
}

TEST_F(RunConfigTest, PathsAreResolvedAgainstTheFolderOfTheFile) {
  json["training"]["trace"] = {"../a.json", "/abs/b.json"};
  const auto config = must(parse(json));
  EXPECT_EQ(config.training.traces, (std::vector<std::string>{"a.json", "/abs/b.json"}));
  EXPECT_EQ(std::get<TraceProgram>(config.fillers[0].program).path, "configs/bert.json");
}

TEST_F(RunConfigTest, EveryKeyIsRead) {
  json.erase("duration");
  json.update({{"iterations", 50}, {"seed", 9}, {"device", "h100"}, {"warmup", "100ms"}});
  json["training"].update({{"memory", "30GB"},
                           {"samples_per_iteration", 8},
                           {"jitter_cv", 0.02},
                           {"use_iterations", "5-9"},
                           {"stragglers", {{{"rank", 3}, {"slowdown", 1.2}}}}});
  json["fillers"][1].update({{"gpus", {1, 0}},
                             {"requests_per_pass", 4},
                             {"max_batch", 16},
                             {"max_wait", "5ms"},
                             {"batch_cost", 0.25},
                             {"deadline", "100ms"},
                             {"jitter_cv", 0.03},
                             {"memory", "5GiB"}});
  json["gate"] = {{"ask", "2us"}, {"tell", "500ns"}, {"always", true}};
  json["power"] = {{"cap_w", 300}, {"node_cap_w", 1000}, {"period", "2ms"}};
  json["fillers"][1]["program"]["launch_gap"] = "5us";
  json["fillers"][1]["arrivals"] = {{"process", "gamma"}, {"rate_per_s", 20}, {"cv", 2}};
  const auto config = must(parse(json));
  EXPECT_EQ(config.iterations, 50U);
  EXPECT_EQ(config.device, "h100");
  EXPECT_EQ(config.training.memory, Bytes{30'000'000'000});
  EXPECT_EQ(config.training.stragglers[0].rank, 3U);
  EXPECT_EQ(traces::iteration_choice_text(config.training.iterations), "5-9");
  EXPECT_EQ(config.training.stragglers[0].slowdown, 1.2);
  EXPECT_EQ(config.gate.value().ask, Duration{2000});
  EXPECT_EQ(config.gate->tell, Duration{500});
  EXPECT_TRUE(config.gate->always);
  EXPECT_EQ(config.power.value().cap_w, 300);
  EXPECT_EQ(config.power->node_cap_w, 1000);
  const FillerConfig& filler = config.fillers[1];
  EXPECT_EQ(filler.gpus, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(filler.jitter_cv, 0.03);
  EXPECT_EQ(filler.batching.max_wait, milliseconds{5});
  EXPECT_EQ(filler.deadline, milliseconds{100});
  EXPECT_EQ(filler.memory, Bytes{5ULL << 30U});
  EXPECT_EQ(std::get<KernelTableProgram>(filler.program).launch_gap, Duration{5000});
  EXPECT_EQ(std::get<workload::GammaArrivals>(*filler.arrivals).cv, 2);
}

TEST_F(RunConfigTest, ArrivalsFromAFileHaveAFormatAndASpeedup) {
  json["fillers"][1]["arrivals"] = {
      {"process", "file"}, {"path", "a.csv.gz"}, {"format", "azure"}, {"speedup", 2.5}};
  const auto config = must(parse(json));
  const auto& arrivals = std::get<workload::FileArrivals>(*config.fillers[1].arrivals);
  EXPECT_EQ(arrivals.path, "configs/a.csv.gz");
  EXPECT_EQ(arrivals.speedup, 2.5);
}

TEST_F(RunConfigTest, PolicyParametersHaveGivenValuesAndDefaults) {
  json["policies"] = {"mps", {{"name", "mps"}, {"parameters", {{"filler_percentage", 30}}}}};
  const auto config = must(parse(json));
  ASSERT_EQ(config.policies.size(), 2U);
  EXPECT_EQ(config.policies[0].parameters.integer("filler_percentage"), 100);
  EXPECT_EQ(config.policies[1].parameters.integer("filler_percentage"), 30);
  EXPECT_EQ(config.policies[1].parameters.integer("training_percentage"), 100);
}

TEST_F(RunConfigTest, NoFillersIsAJobAlone) {
  json["fillers"] = Json::array();
  EXPECT_TRUE(parse(json));
  json.erase("fillers");
  EXPECT_TRUE(parse(json));
}

TEST_F(RunConfigTest, GpusAndStragglersOutsideTheJobAreFaults) {
  json["training"]["stragglers"] = {{{"rank", 4}, {"slowdown", 2}}};
  json["fillers"][1]["gpus"] = {3, 8};
  const auto config = must(parse(json));
  EXPECT_TRUE(check_ranks(config, {0, 1, 2, 3, 4, 5, 6, 7, 8}).empty());
  EXPECT_EQ(texts(check_ranks(config, {0, 1, 2, 3})),
            "configs/test.json: /training/stragglers/0/rank: found rank 4; the job has ranks 0 to "
            "3\n"
            "configs/test.json: /fillers/1/gpus: found GPU 8; the job has ranks 0 to 3\n");
}

TEST_F(RunConfigTest, ShippedExampleIsValid) {
  const std::string path = BUBBLESIM_SOURCE_DIR "/configs/runs/example.json";
  const auto config = must(read_run_config(path, policies::builtin_policies()));
  EXPECT_EQ(config.policies.size(), 4U);
  EXPECT_EQ(config.fillers[0].batching.requests_per_pass, 8U);
}

TEST_F(RunConfigTest, ASynthesisedJobIsNamesOrPathsAgainstTheConfigsFolder) {
  json["training"] = Json::parse(R"({"synth": {"model": "gpt2-large", "plan": "my/plan.json",
      "cluster": "a100-40gb-4", "nodes": 2, "hash_seed": 7, "software": "pytorch",
      "folding": "nothing"}})");
  const auto config = must(parse(json));
  EXPECT_TRUE(config.training.traces.empty());
  ASSERT_TRUE(config.training.synth);
  const synth::JobNames& names = *config.training.synth;
  EXPECT_EQ(names.model, "gpt2-large");
  EXPECT_EQ(std::get<std::string>(names.plan), "configs/my/plan.json");
  EXPECT_EQ(names.cluster, "a100-40gb-4");
  EXPECT_EQ(names.nodes, 2U);
  EXPECT_EQ(names.hash_seed, 7U);
  EXPECT_EQ(names.software, "pytorch");
  EXPECT_EQ(names.folding, synth::Folding::kNothing);
}

TEST_F(RunConfigTest, APlanMayBeWrittenOut) {
  json["training"] = Json::parse(R"({"synth": {"model": "gpt2-large", "cluster": "a100-40gb-4",
      "plan": {"pipeline": 4, "schedule": "gpipe", "global_batch": 32, "micro_batch": 4}}})");
  const auto config = must(parse(json));
  const auto& plan = std::get<synth::PlanSpec>(config.training.synth->plan);
  EXPECT_EQ(plan.pipeline, 4U);
  EXPECT_EQ(plan.schedule, "gpipe");
  EXPECT_EQ(plan.micro_batches(), 8U);
}

TEST_F(RunConfigTest, OfAFoldedJobOnlySimulatedRanksCanBeStragglers) {
  RunConfig config;
  config.training.stragglers = {{4, 2.0}, {5, 2.0}};
  config.fillers.emplace_back();
  config.fillers.back().gpus = {{1, 2}};
  const Errors errors = check_ranks(config, {0, 4});
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].place, "/training/stragglers/1/rank");
  EXPECT_EQ(errors[1].place, "/fillers/0/gpus");
  EXPECT_NE(errors[1].message.find("found GPU 2"), std::string::npos) << errors[1].message;
}

// Ranks 1, 2, 3 and 6 of a job that was recorded in part run on GPUs 0 to 3.
TEST_F(RunConfigTest, StragglersAreRankNumbersAndGpusAreCounted) {
  RunConfig config;
  config.training.stragglers = {{0, 2.0}, {3, 2.0}, {6, 2.0}};
  config.fillers.emplace_back();
  config.fillers.back().gpus = {{0, 4}};
  EXPECT_EQ(texts(check_ranks(config, {1, 2, 3, 6})),
            "/training/stragglers/0/rank: found rank 0; the job has ranks 1 to 3, 6, on GPUs 0 to "
            "3\n"
            "/fillers/0/gpus: found GPU 4; the job has ranks 1 to 3, 6, on GPUs 0 to 3\n");
  config.training.stragglers = {{0, 2.0}};
  config.fillers.clear();
  EXPECT_EQ(texts(check_ranks(config, {3})),
            "/training/stragglers/0/rank: found rank 0; the job has rank 3, on GPU 0\n");
}

TEST_F(RunConfigTest, AnAutomaticLengthHasAPrecisionAndAnUpperBound) {
  json["duration"] = "auto";
  const auto plain = must(parse(json));
  ASSERT_TRUE(plain.precision);
  EXPECT_EQ(plain.precision->training, 0.005);
  EXPECT_EQ(plain.precision->fillers, 0.02);
  EXPECT_EQ(plain.precision->latency, 0.05);
  EXPECT_EQ(plain.precision->confidence, 0.95);
  EXPECT_EQ(plain.warmup, seconds{1});
  EXPECT_EQ(plain.duration, seconds{121});
  json.update({{"precision", {{"training", 0.1}, {"least", "1s"}, {"most", "30s"}}},
               {"warmup", "3s"}});
  const auto set = must(parse(json));
  EXPECT_EQ(set.precision->training, 0.1);
  EXPECT_EQ(set.precision->least, seconds{1});
  EXPECT_EQ(set.duration, seconds{33});
  EXPECT_FALSE(parse(valid_config())->precision);
}

// Fill jobs, instances and shares of SMs in a run config.

using namespace std::chrono_literals;

/// The first filler of the valid config, changed.
CheckedResult<RunConfig> with(const std::string& patch) {
  Json json = valid_config();
  json["fillers"][0].merge_patch(Json::parse(patch));
  return parse(json);
}

TEST(FillJobsConfig, AListHoldsJobsOfTheirOwn) {
  const auto config = must(with(R"({"mode": "jobs", "jobs": [
      {"requests": 1000}, {"requests": 5, "submitted": "2s", "deadline": "60s"}]})"));
  const FillerConfig& filler = config.fillers.front();
  EXPECT_EQ(filler.mode, observe::FillerMode::kJobs);
  ASSERT_EQ(filler.jobs.size(), 2U);
  EXPECT_EQ(filler.jobs[0].requests, 1000U);
  EXPECT_EQ(filler.jobs[0].submitted, 0s);
  EXPECT_EQ(filler.jobs[0].deadline, std::nullopt);
  EXPECT_EQ(filler.jobs[1].submitted, 2s);
  EXPECT_EQ(filler.jobs[1].deadline, Duration{60s});
}

TEST(FillJobsConfig, AnObjectIsSubmittedAgainAndAgain) {
  const auto config = must(with(R"({"mode": "jobs", "jobs":
      {"requests": 10, "count": 3, "submitted": "1s", "every": "500ms", "deadline": "4s"}})"));
  const auto& jobs = config.fillers.front().jobs;
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(jobs[0].submitted, 1s);
  EXPECT_EQ(jobs[2].submitted, 2s);
  EXPECT_EQ(jobs[2].deadline, Duration{4s});
}

TEST(FillJobsConfig, InstancesAndSharesAreRead) {
  const auto config = must(with(R"({"instances": 2, "sm_request": 0.3, "sm_limit": 0.6})"));
  EXPECT_EQ(config.fillers[0].instances, 2U);
  EXPECT_EQ(config.fillers[0].sm_request, 0.3);
  EXPECT_EQ(config.fillers[0].sm_limit, 0.6);
  EXPECT_EQ(config.fillers[1].instances, std::nullopt);
  EXPECT_EQ(role_of(config.fillers[0]), policy::Role::kOffline);
  EXPECT_EQ(role_of(config.fillers[1]), policy::Role::kOnline);
}

TEST(FillJobsConfig, AFillerMayTrain) {
  const auto config = must(with(R"({"program": {"trace": null, "train": {
      "model": "bert-base", "plan": {"global_batch": 8, "micro_batch": 8}, "cluster": "c"}}})"));
  EXPECT_EQ(std::get<TrainProgram>(config.fillers[0].program).names.model, "bert-base");
  EXPECT_EQ(role_of(config.fillers[0]), policy::Role::kTraining);
}

TEST(FillJobsConfig, MoreInstancesThanGpusAreAFault) {
  const auto config = must(with(R"({"instances": 3, "gpus": [0, 1]})"));
  const Errors faults = check_ranks(config, {0, 1, 2, 3});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults.front().place, "/fillers/0/instances");
}

}  // namespace
}  // namespace bubblesim::run
