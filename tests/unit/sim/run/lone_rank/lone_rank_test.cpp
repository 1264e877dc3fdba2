// One rank by itself: its iterations take what they take in the whole job, and what the config
// says of other ranks and GPUs is gone.
#include <gmock/gmock.h>

#include <cmath>

#include "sim/run/lone_rank.hpp"
#include "sim/schedule/bubble_table.hpp"
#include "sim/workload/lone_job.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

using testing::HasSubstr;

const std::string kRoot = BUBBLESIM_SOURCE_DIR;

LoadedRun loaded(const RunConfig& config) {
  return must(load_run(config, kRoot + "/configs/devices"));
}

RunConfig samples() {
  RunConfig config;
  config.file = "run.json";
  config.iterations = 1;
  config.training.traces = {kRoot + "/traces/samples/training"};
  return config;
}

RunConfig synthesised(const std::string& model, const std::string& plan) {
  RunConfig config;
  config.file = "run.json";
  config.iterations = 1;
  config.training.synth.emplace();
  config.training.synth->model = model;
  config.training.synth->plan = plan;
  config.training.synth->cluster = "a100-40gb-4";
  return config;
}

/// When each iteration of one rank ended.
class Marks final : public workload::RunObserver {
 public:
  void on_iteration(workload::ProgramRun&, std::uint32_t index, SimTime now) override {
    if (index > 0) ends.push_back(now);
  }
  std::vector<SimTime> ends;
};

/// Mean iteration of each rank in the second to fifth pass.
std::vector<double> mean_iterations(const LoadedRun& run) {
  const std::size_t ranks = run.training->ranks.size();
  std::vector<Marks> marks(ranks);
  workload::LoneSetup setup{workload::Repeat::kLoop, 5, {}};
  workload::LoneJob job(*run.training, run.device, setup, workload::pointers_to(marks));
  job.run();
  EXPECT_TRUE(job.finished());
  std::vector<double> means;
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::uint32_t pass = run.training->ranks[i].iterations;
    const Duration span = marks[i].ends.back() - marks[i].ends[pass - 1];
    means.push_back(static_cast<double>(span.count()) / (4.0 * pass));
  }
  return means;
}

/// Largest difference between a rank by itself and in the job, relative.
double worst_difference(const LoadedRun& run) {
  const std::vector<double> whole = mean_iterations(run);
  double worst = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto single = must(lone_rank(run, run.training->ranks[i].rank));
    const double lone = mean_iterations(single).front();
    worst = std::max(worst, std::abs(lone / whole[i] - 1));
  }
  testing::Test::RecordProperty("worst_difference_ppm", std::to_string(worst * 1e6));
  return worst;
}

// Of a recorded job, a data-parallel one and a pipeline.
TEST(LoneRank, TakesAsLongAsInTheJob) {
  EXPECT_LT(worst_difference(loaded(samples())), 1e-9);
  EXPECT_LT(worst_difference(loaded(synthesised("bert-large", "ddp-4"))), 1e-9);
  EXPECT_LT(worst_difference(loaded(synthesised("gpt2-large", "pp-4-1f1b"))), 1e-9);
}

TEST(LoneRank, KnowsWhichOfItsBubblesAreWaitsForPipelinePeers) {
  const LoadedRun run = loaded(synthesised("gpt2-large", "pp-4-1f1b"));
  const auto whole = schedule::measure_bubbles(*run.training, run.device);
  const auto lone = schedule::measure_bubbles(*lone_rank(run, 1)->training, run.device);
  ASSERT_TRUE(whole);
  ASSERT_TRUE(lone);
  const schedule::BubbleTable& expected = (*whole)[1];
  const schedule::BubbleTable& found = lone->front();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].after_op, expected[i].after_op);
    EXPECT_EQ(found[i].info.pipeline, expected[i].info.pipeline);
  }
}

// Two ranks, 7 ms an iteration; rank 1 takes twice as long for what it computes.
TEST(LoneRank, WaitsForAStragglerOfTheConfigAndNamesNoOtherRank) {
  LoadedRun run = small_run({});
  run.config.training.stragglers = {{1, 2.0}};
  const auto first = must(lone_rank(run, 0));
  EXPECT_TRUE(first.config.training.stragglers.empty());
  const auto second = must(lone_rank(run, 1));
  EXPECT_EQ(second.config.training.stragglers.size(), 1U);
  EXPECT_TRUE(check_ranks(second.config, {1}).empty());
  EXPECT_GT(mean_iterations(first).front(), mean_iterations(small_run({})).front());
}

TEST(LoneRank, KeepsTheFillersOfItsGpu) {
  FillerConfig everywhere = offline("everywhere");
  FillerConfig first = offline("first");
  first.gpus = {0};
  FillerConfig second = offline("second");
  second.gpus = {1};
  second.instances = 1;
  LoadedRun run = small_run({everywhere, first, second});
  run.rank_memory = {Bytes{1}, Bytes{2}};
  const auto single = must(lone_rank(run, 1));
  ASSERT_EQ(single.config.fillers.size(), 2U);
  EXPECT_EQ(single.fillers.size(), 2U);
  EXPECT_EQ(single.config.fillers[0].name, "everywhere");
  EXPECT_FALSE(single.config.fillers[0].gpus);
  EXPECT_EQ(single.config.fillers[1].name, "second");
  EXPECT_EQ(single.config.fillers[1].gpus, std::vector<std::uint32_t>{0});
  EXPECT_EQ(single.config.fillers[1].instances, 1U);
  EXPECT_TRUE(check_ranks(single.config, {1}).empty());
  EXPECT_EQ(single.rank_memory, std::vector<std::optional<Bytes>>{Bytes{2}});
}

// 40 requests a second on two GPUs are 20 on each; every second gap of a Poisson process has
// half the variance for its mean.
TEST(LoneRank, ServesItsPartOfTheRequests) {
  const auto single = must(lone_rank(small_run({online("service", 40)}), 0));
  const auto& arrivals =
      std::get<workload::GammaArrivals>(*single.config.fillers.front().arrivals);
  EXPECT_DOUBLE_EQ(arrivals.rate_per_s, 20);
  EXPECT_DOUBLE_EQ(arrivals.cv, std::sqrt(0.5));
}

TEST(LoneRank, ReportsOneRankOfTheSameWorld) {
  LoadedRun run = small_run({offline("filler")});
  run.world_size = 2;
  run.config.policies = {choice("exclusive")};
  const observe::RunReport report = report_of(*lone_rank(run, 1));
  EXPECT_EQ(report.ranks, 1U);
  EXPECT_EQ(report.world_size, 2U);
  EXPECT_EQ(report.policies.front().training.ranks.front().rank, 1U);
  EXPECT_EQ(report.baseline.training_mean_iteration, 7ms);
}

// Its first step comes after the first of rank 0.
TEST(LoneRank, WaitsForNoStepOfAnotherRankOfItsProcess) {
  LoadedRun run = small_run({});
  workload::JobProgram job = *run.training;
  program::Program& second = job.ranks[1];
  second.threads[0].steps[0].detail = static_cast<std::uint32_t>(second.details.size());
  program::StepDetail& detail = second.details.emplace_back();
  detail.after_thread = 0;
  detail.after_rank = 0;
  job.shared_hosts = true;
  run.training = std::move(job);
  const auto single = must(lone_rank(run, 1));
  EXPECT_EQ(single.training->ranks[0].details.back().after_thread, program::kNoIndex);
  EXPECT_EQ(single.training->ranks[0].details.back().after_rank, program::kNoIndex);
}

TEST(LoneRank, ItsPolicyIsToldOfAJobOfOneGpu) {
  const LoadedRun run = small_run({});
  EXPECT_EQ(rank_info(run, 1).ranks, 2U);
  const auto single = must(lone_rank(run, 1));
  EXPECT_EQ(rank_info(single, 0).ranks, 1U);
}

TEST(LoneRank, APolicyIsToldOfFoldedRanksToo) {
  const LoadedRun run = loaded(synthesised("roberta-large", "ddp-4"));
  ASSERT_EQ(run.training->ranks.size(), 1U);
  EXPECT_EQ(rank_info(run, 0).ranks, 4U);
}

TEST(LoneRank, ARankThatTheJobDoesNotHaveIsAFault) {
  EXPECT_THAT(error_of(lone_rank(small_run({}), 2)).text(), HasSubstr("simulated are 0, 1"));
}

TEST(LoneRank, AFoldedRankIsRefusedWithTheOneThatStandsForIt) {
  const LoadedRun run = loaded(synthesised("roberta-large", "ddp-4"));
  const auto folded = error_of(lone_rank(run, 3));
  EXPECT_THAT(folded.text(), HasSubstr("rank 0 stands for it"));
  EXPECT_THAT(folded.text(), HasSubstr("\"folding\": \"nothing\""));
  EXPECT_THAT(error_of(lone_rank(run, 4)).text(), HasSubstr("no such rank"));
}

}  // namespace
}  // namespace bubblesim::run
