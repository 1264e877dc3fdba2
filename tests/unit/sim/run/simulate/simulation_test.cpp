// One simulation of the small job, whose every time is known by hand.
#include "sim/run/simulation.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "sim/run/unmet_config.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

using testing::Each, testing::HasSubstr;

observe::PolicyResult under(const std::string& policy, const LoadedRun& loaded) {
  const PolicyChoice chosen = choice(policy);
  RunScenario scenario = all_of(loaded, *registry().find(policy));
  scenario.parameters = &chosen.parameters;
  return simulate(loaded, scenario);
}

/// The first filler's result without training.
observe::FillerResult filler_alone(const LoadedRun& loaded) {
  RunScenario scenario = all_of(loaded);
  scenario.training = false;
  return simulate(loaded, scenario).fillers.front();
}

TEST(Simulation, ARunForATimeEndsThen) {
  const observe::PolicyResult result = simulate(small_run({}));
  EXPECT_EQ(result.simulated, 70ms);
  ASSERT_EQ(result.training.ranks.size(), 2U);
  for (const auto& rank : result.training.ranks) {
    EXPECT_EQ(rank.times.size(), 10U);  // 70 / 7
    EXPECT_THAT(rank.times, Each(Duration{7ms}));
  }
}

TEST(Simulation, ARunForIterationsEndsWithTheLastRanksLast) {
  LoadedRun loaded = for_iterations(small_run({}), 3);
  const observe::PolicyResult result = simulate(loaded);
  EXPECT_EQ(result.simulated, 21ms);
  EXPECT_EQ(result.training.iterations, 3U);
}

// Beside the filler three iterations end before 30 ms.
TEST(Simulation, ARunForIterationsThatAWarmUpOutlastsIsAFault) {
  LoadedRun loaded = for_iterations(small_run({offline("filler")}), 3);
  loaded.config.warmup = 30ms;
  EXPECT_THAT(error_of(Simulation(loaded, all_of(loaded)).run()).message,
              HasSubstr("found 30ms, and \"iterations\" end after 2"));
}

TEST(Simulation, WhatEndsInTheWarmUpIsNotCounted) {
  LoadedRun loaded = small_run({});
  loaded.config.warmup = 20ms;  // ends of iterations: 7 and 14 before, 21 to 70 after: 8
  const observe::PolicyResult result = simulate(loaded);
  EXPECT_EQ(result.training.ranks.front().first_counted, 2U);
  EXPECT_EQ(result.training.iterations, 8U);
  EXPECT_EQ(result.training.mean_iteration, 7ms);
}

// Alone, a pass takes 1.1 ms from launch to launch: its F and the return of the wait.
TEST(Simulation, AnOfflineFillerAloneAlwaysHasANextRequest) {
  const LoadedRun loaded = small_run({offline("filler")});
  const observe::FillerResult filler = filler_alone(loaded);
  // Ends at 1.1 n: 63 x 1.1 = 69.3, on each of two GPUs.
  EXPECT_EQ(filler.passes, 2U * 63U);
  EXPECT_EQ(filler.requests_completed, 2U * 63U);
}

// A pass is 0.1 ms and a factor of mean 1 times 1 ms. In 11 s there are 10,000, give or take four
// standard deviations of their sum, 4 x 0.1 x sqrt(10,000) x 1 ms = 40 ms or 36 passes. Each GPU
// has its own.
TEST(Simulation, AFillersPassesVaryRoundTheirProfile) {
  LoadedRun loaded = small_run({offline("filler")});
  loaded.config.duration = 11s;
  const auto passes = [&](double cv) {
    loaded.config.fillers.front().jitter_cv = cv;
    const observe::FillerResult filler = filler_alone(loaded);
    return std::pair(filler.instances[0].passes, filler.instances[1].passes);
  };
  EXPECT_EQ(passes(0), std::pair(std::uint64_t{10'000}, std::uint64_t{10'000}));
  const auto [first, second] = passes(0.1);
  EXPECT_NEAR(static_cast<double>(first), 10'000, 36);
  EXPECT_NEAR(static_cast<double>(second), 10'000, 36);
  EXPECT_NE(first, second);
}

/// Longest iteration of rank 0 beside FreeRide's steps of 1.1 ms, and how many of them were served.
/// Bubbles are 2 ms at most, and the policy sees them at once.
std::pair<Duration, std::uint64_t> beside_steps(double jitter_cv, double margin,
                                                const std::string& looks = "completion") {
  LoadedRun loaded = small_run({offline("filler")});
  loaded.config.duration = 700ms;
  loaded.config.warmup = 14ms;
  loaded.config.fillers.front().jitter_cv = jitter_cv;
  const policy::ParameterSet fallbacks = policy::defaults(**registry().find("freeride"));
  std::map<std::string, policy::Value, std::less<>> values(fallbacks.begin(), fallbacks.end());
  values["manager_poll"] = values["interface_poll"] = Duration{1us};
  values["step_margin"] = margin;
  values["looks"] = looks;
  loaded.config.policies = {{"freeride", policy::ParameterSet(std::move(values))}};
  const observe::PolicyResult result = report_of(loaded).policies[0];
  return {std::ranges::max(result.training.ranks.front().times), result.fillers[0].passes};
}

// A step whose profile holds fits its bubble. One that varies may outlast it, and its blocks are
// not taken back: training's next kernel waits for room on the SMs. Where 1.7 steps of 1.1 ms are
// left, 1.87 ms, one begins; nowhere 1.9 are.
TEST(Simulation, AStepThatVariesMayOutlastItsBubbleAndCostTraining) {
  const auto [exact, steps] = beside_steps(0, 1);
  EXPECT_EQ(exact, 7ms);
  EXPECT_GT(steps, 100U);
  EXPECT_GT(beside_steps(0.5, 1).first, 7ms);
  EXPECT_GT(beside_steps(0, 1.7).second, 100U);
  EXPECT_EQ(beside_steps(0, 1.9).second, 0U);
}

// One step of 1.1 ms fits into 2: when it has ended, less than another one is left. Who looks when
// it was launched, at once, finds time for another, which ends 0.1 to 0.2 ms after the bubble.
TEST(Simulation, ALoopThatLooksAtLaunchBeginsAStepTooMany) {
  const auto [exact, steps] = beside_steps(0, 1, "completion");
  const auto [longer, more] = beside_steps(0, 1, "launch");
  EXPECT_EQ(exact, 7ms);
  EXPECT_GT(longer, 7ms);
  EXPECT_LT(longer, 7500us);
  EXPECT_GT(more, steps + steps / 2);
  EXPECT_EQ(beside_steps(0, 1.9, "launch").second, 0U);
}

TEST(Simulation, AFillerRunsOnlyOnItsGpus) {
  LoadedRun loaded = small_run({offline("filler")});
  loaded.config.fillers.front().gpus = {{1}};
  const observe::FillerResult filler = filler_alone(loaded);
  ASSERT_EQ(filler.instances.size(), 1U);
  EXPECT_EQ(filler.instances.front().gpu, GpuId{1});
  EXPECT_EQ(filler.passes, 63U);
}

// One stream of arrivals, dealt to the GPUs in turn: the numbers differ by one at most.
TEST(Simulation, ArrivalsGoRoundTheGpus) {
  LoadedRun loaded = small_run({online("chat", 500)});
  const observe::FillerResult filler = filler_alone(loaded);
  ASSERT_EQ(filler.instances.size(), 2U);
  const std::uint64_t first = filler.instances[0].requests_completed;
  const std::uint64_t second = filler.instances[1].requests_completed;
  EXPECT_GT(first + second, 20U);  // 35 expected
  EXPECT_LE(std::max(first, second) - std::min(first, second), 1U + filler.requests_unfinished);
  EXPECT_EQ(filler.requests_arrived, filler.requests_completed + filler.requests_unfinished);
}

/// The filler on GPU 0 without training, its requests `gaps` seconds apart.
observe::FillerResult served_after(const std::string& gaps, const program::Batching& batching) {
  const std::string path = testing::TempDir() + "/simulation_gaps.json";
  std::ofstream(path) << gaps;
  FillerConfig chat = online("chat", 1);
  chat.arrivals = workload::FileArrivals{path, workload::ArrivalFormat::kGaps};
  chat.batching = batching;
  chat.gpus = {0};
  const LoadedRun loaded = small_run({chat});
  return filler_alone(loaded);
}

// Ten requests in one instant, of which a pass of 1.1 ms takes eight: eight end after one pass, two
// after two. A request that began alone would make it three passes.
TEST(Simulation, RequestsOfOneInstantShareABatch) {
  const observe::FillerResult filler = served_after(
      "[0.01, 0, 0, 0, 0, 0, 0, 0, 0, 0]", {.requests_per_pass = 8, .max_batch = 8});
  EXPECT_EQ(filler.requests_completed, 10U);
  EXPECT_EQ(filler.passes, 2U);
  const Duration pass = filler.latency.percentile(10)->value;
  EXPECT_EQ(filler.latency.percentile(80)->value, pass);
  EXPECT_EQ(filler.latency.percentile(90)->value, 2 * pass);
}

// The batch of the first is due 2 ms after it, when the second arrives: both are in it.
TEST(Simulation, ARequestOfTheInstantInWhichABatchIsDueJoinsIt) {
  const observe::FillerResult filler = served_after(
      "[0.01, 0.002]", {.requests_per_pass = 8, .max_batch = 8, .max_wait = 2ms});
  EXPECT_EQ(filler.requests_completed, 2U);
  EXPECT_EQ(filler.passes, 1U);
}

// 30 ms of warm-up; a pass takes 1.1 ms: a GPU serves 909 a second of the 2,500 that arrive.
TEST(Simulation, ThroughputIsOfRequestsThatEndInTheWindowWheneverTheyArrived) {
  LoadedRun loaded = small_run({online("chat", 5000)});
  loaded.config.warmup = 30ms;
  const observe::FillerResult filler = filler_alone(loaded);
  EXPECT_GT(filler.requests_before, 50U);
  // Busy all the time: passes end at 1.1 n after the first arrivals, 36 or 37 a GPU in 40 ms.
  EXPECT_GE(filler.requests_completed, 2U * 36U);
  EXPECT_LE(filler.requests_completed, 2U * 37U);
  EXPECT_EQ(filler.requests_completed, filler.passes);
  EXPECT_EQ(filler.requests_before + filler.requests_arrived,
            filler.requests_completed + filler.requests_unfinished);
  EXPECT_TRUE(filler.overloaded);
  // Nobody who arrived in the window was served: the backlog of the warm-up came first.
  EXPECT_EQ(filler.latency.unfinished(), filler.requests_arrived);
}

TEST(Simulation, RequestsForARefusedFillerAreCountedAsRefused) {
  LoadedRun loaded = small_run({online("chat", 500)});
  const observe::FillerResult filler = under("exclusive", loaded).fillers.front();
  EXPECT_GT(filler.requests_arrived, 0U);
  EXPECT_EQ(filler.requests_refused, filler.requests_arrived);
  EXPECT_EQ(filler.requests_completed + filler.requests_unfinished, 0U);
  EXPECT_EQ(filler.admitted_gpus(), 0U);
}

// 16 GB of GPU, 10 of training: 4 fit, 4 more do not, and 2 still do.
TEST(Simulation, FillersAreAdmittedWhileTheirMemoryFits) {
  LoadedRun loaded = small_run({offline("a"), offline("b"), offline("c")});
  loaded.config.fillers[0].memory = Bytes{4'000'000'000};
  loaded.config.fillers[1].memory = Bytes{4'000'000'000};
  loaded.config.fillers[2].memory = Bytes{2'000'000'000};
  const observe::PolicyResult result = under("mps", loaded);
  EXPECT_EQ(result.fillers[0].admitted_gpus(), 2U);
  EXPECT_EQ(result.fillers[1].admitted_gpus(), 0U);
  EXPECT_EQ(result.fillers[2].admitted_gpus(), 2U);
  EXPECT_THAT(result.fillers[1].instances.front().reason, HasSubstr("4GB"));
  // Two GPUs each; a refused filler holds nothing.
  EXPECT_EQ(result.fillers[0].memory, Bytes{8'000'000'000});
  EXPECT_EQ(result.fillers[1].memory, Bytes{0});
  EXPECT_EQ(result.fillers[1].instances.front().memory, Bytes{0});
  EXPECT_EQ(result.fillers[2].memory, Bytes{4'000'000'000});
  EXPECT_EQ(result.gpus.front().memory_high_water, Bytes{16'000'000'000});
}

/// Holds training's every launch, and never lets one go.
class Jailer final : public policy::Policy {
 public:
  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    return {};
  }
  policy::Verdict on_launch(const policy::LaunchInfo&, policy::Instant, policy::Actions&) override {
    return policy::Verdict::kHold;
  }
};

TEST(Simulation, TrainingThatStandsStillIsAnErrorThatSaysWhatItWaitsFor) {
  policy::PolicySpec jailer;
  jailer.name = "jailer";
  jailer.make = [](const policy::ParameterSet&) { return std::make_unique<Jailer>(); };
  const LoadedRun loaded = small_run({offline("filler")});
  const observe::PolicyResult result = simulate(loaded, all_of(loaded, &jailer));
  EXPECT_EQ(result.counters.count(kTrainingStoodStill.name), 2U);  // of two ranks
  EXPECT_TRUE(result.counters.has_error());
  EXPECT_THAT(result.training.stands_still,
              testing::HasSubstr("no iteration in 70ms on 2 of 2 GPUs; rank 0 waits for the "
                                 "policy to let a launch go on"));
}

TEST(Simulation, MemoryOfAGpuIsNotKnownIfThatOfAClientIsNot) {
  LoadedRun loaded = small_run({offline("filler")});
  loaded.config.fillers.front().memory.reset();
  EXPECT_EQ(simulate(loaded, all_of(loaded)).gpus.front().memory_high_water, Bytes{});
}

TEST(Simulation, AStragglerSlowsItsKernelsAndThroughCollectivesTheOthers) {
  LoadedRun loaded = small_run({});
  loaded.config.training.stragglers = {{1, 2.0}};
  // Rank 1: A 0 - 2, B 2 - 6, AR 6 - 7, C 7 - 9, idle to 11. Rank 0: C 7 - 8, idle to 10; from
  // then on it waits for rank 1 in each AR: 11 each, with its end 1 earlier.
  const observe::PolicyResult result = simulate(loaded);
  EXPECT_THAT(result.training.ranks[1].times, Each(Duration{11ms}));
  EXPECT_EQ(result.training.ranks[0].times[0], 10ms);
  EXPECT_EQ(result.training.ranks[0].times[1], 11ms);
}

TEST(Simulation, AJobWhoseDependencyIsNeverMetIsAFault) {
  LoadedRun loaded = small_run({});
  workload::JobProgram job = *loaded.training;
  job.collectives.front().participants = 3;
  loaded.training = job;
  EXPECT_THAT(error_of(Simulation(loaded, {}).run()).text(),
              HasSubstr("a dependency is never met"));
}

// Rank 1 is twice as slow from 14 to 28 ms. Its iterations: 2 + 4 of kernels, 1 of the collective,
// 2, and 2 of its host = 11 ms, to 25; then A and B begin before 28 (2 + 4), C does not:
// 2 + 4 + 1 + 1 + 2 = 10.
TEST(Simulation, AStragglerThatIsFoundSlowsTheJobUntilThen) {
  LoadedRun loaded = small_run({});
  loaded.config.training.stragglers = {{.rank = 1, .slowdown = 2, .from = 14ms, .until = 28ms}};
  const observe::PolicyResult result = simulate(loaded);
  const std::vector<Duration>& times = result.training.ranks[1].times;
  ASSERT_GE(times.size(), 6U);
  EXPECT_EQ(std::vector<Duration>(times.begin(), times.begin() + 6),
            (std::vector<Duration>{7ms, 7ms, 11ms, 10ms, 7ms, 7ms}));
}

// A fault strikes at 15 ms, 1 ms into the third iteration, and is found and the job restarted at
// 25 ms. What was launched ends by 19; the host's call at the iteration's end, due at 21, is made
// at 25: 11 ms. Of the two iterations before, a checkpoint after every three has none.
TEST(Simulation, AFaultStopsAllRanksUntilTheJobIsRestarted) {
  LoadedRun loaded = small_run({});
  loaded.config.training.faults = {{.at = 15ms, .detection = 6ms, .restart = 4ms}};
  loaded.config.training.checkpoint_every = 3;
  const observe::PolicyResult result = simulate(loaded);
  for (const observe::RankIterations& rank : result.training.ranks) {
    ASSERT_GE(rank.times.size(), 4U);
    EXPECT_EQ(std::vector<Duration>(rank.times.begin(), rank.times.begin() + 4),
              (std::vector<Duration>{7ms, 7ms, 11ms, 7ms}));
  }
  const std::size_t done = result.training.ranks[0].times.size();
  ASSERT_TRUE(result.training.goodput_per_s.has_value());
  EXPECT_EQ(result.training.redone, 2U);
  EXPECT_NEAR(*result.training.goodput_per_s / result.training.iterations_per_s,
              1 - 2.0 / static_cast<double>(done), 1e-12);
}

// The run lasts 70 ms: what is due at its end, or later, is not in it. A fault before has its
// checkpoints; without one they are of no use.
TEST(Simulation, KeysThatChangeNothingAreCountedAndSaid) {
  LoadedRun loaded = small_run({});
  loaded.config.training.faults = {{.at = 70ms, .detection = 6ms, .restart = 4ms}};
  loaded.config.training.stragglers = {{.rank = 0, .slowdown = 2},
                                       {.rank = 1, .slowdown = 2, .from = 2s}};
  const observe::PolicyResult late = simulate(loaded);
  EXPECT_EQ(late.counters.count(kKeysWithoutEffect.name), 2U);
  EXPECT_THAT(late.notices,
              testing::ElementsAre("/training/faults/0: strikes at 70ms, the run ended at 70ms",
                                   "/training/stragglers/1: begins at 2s, the run ended at 70ms"));
  loaded = small_run({});
  loaded.config.training.checkpoint_every = 3;
  EXPECT_THAT(simulate(loaded).notices,
              testing::ElementsAre(HasSubstr("/training/checkpoint_every: there are no")));
  loaded.config.training.faults = {{.at = 15ms, .detection = 6ms, .restart = 4ms}};
  EXPECT_THAT(simulate(loaded).notices, testing::IsEmpty());
}

TEST(Simulation, KeysOfBatchesThatContinuousBatchingHasNoUseForAreCountedAndSaid) {
  FillerConfig filler = offline("chat");
  filler.unused_batching = {"max_batch", "batch_cost"};
  const observe::PolicyResult result = simulate(small_run({filler}));
  EXPECT_EQ(result.counters.count(kKeysWithoutEffect.name), 2U);
  EXPECT_THAT(result.notices,
              testing::ElementsAre(HasSubstr("/fillers/0/max_batch: with continuous batching"),
                                   HasSubstr("/fillers/0/batch_cost: with continuous batching")));
}

TEST(Simulation, APassThatServesFewerThanItCouldIsSaid) {
  FillerConfig filler = offline("batch");
  filler.batching = {.requests_per_pass = 8, .max_batch = 1};
  const observe::PolicyResult result = simulate(small_run({filler}));
  EXPECT_EQ(result.counters.count(kPassesPartlyFilled.name), 1U);
  EXPECT_THAT(result.notices, testing::ElementsAre("/fillers/0/max_batch: a pass serves 1 of the 8 "
                                                   "requests of \"requests_per_pass\""));
  filler.batching.max_batch = 8;
  EXPECT_THAT(simulate(small_run({filler})).notices, testing::IsEmpty());
}

}  // namespace
}  // namespace bubblesim::run
