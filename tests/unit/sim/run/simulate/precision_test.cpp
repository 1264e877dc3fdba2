// Runs that end by themselves: when their figures are known.
#include <gmock/gmock.h>

#include <cmath>

#include "sim/observe/report.hpp"
#include "sim/run/simulation.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

using testing::ElementsAre, testing::Field, testing::HasSubstr;

/// The small run, until it is known: at least 100 ms of it, at most 10 s.
LoadedRun until_known(const std::vector<FillerConfig>& fillers) {
  LoadedRun loaded = small_run(fillers);
  loaded.config.precision = PrecisionGoal{.least = 100ms, .most = 10s};
  loaded.config.duration = loaded.config.warmup + 10s;
  return loaded;
}

observe::PolicyResult simulate_known(const LoadedRun& loaded, const RunScenario& scenario) {
  auto result = Simulation(loaded, scenario).run();
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  return result ? *result : observe::PolicyResult{};
}

// 7 ms an iteration, always: the 14 of the first 100 ms say all, and so does the look after it.
TEST(PrecisionWatch, ATrainingThatNeverVariesIsKnownAtTheSecondLook) {
  LoadedRun loaded = until_known({});
  loaded.config.warmup = 20ms;
  const observe::PolicyResult result = simulate_known(loaded, {});
  EXPECT_EQ(result.simulated, 145ms);
  EXPECT_EQ(result.warmup, 20ms);
  EXPECT_DOUBLE_EQ(result.training.iterations_per_s, 1 / 7e-3);
  ASSERT_TRUE(result.precision);
  ASSERT_EQ(result.precision->figures.size(), 1U);
  EXPECT_EQ(result.precision->figures.front().figure, "training_rate");
  EXPECT_EQ(result.precision->figures.front().found, 0);
  EXPECT_TRUE(result.precision->figures.front().reached);
  EXPECT_EQ(result.counters.count("run_precision_not_reached"), 0U);
}

// Ten passes must have been: a window of 60 ms has eight iterations of 7 ms. Looks come at 60, 75
// and 93.75 ms, of which the second and the third have ten.
TEST(PrecisionWatch, ItLooksAgainWhenTheWindowIsAQuarterLonger) {
  LoadedRun loaded = until_known({});
  loaded.config.precision->least = 60ms;
  EXPECT_EQ(simulate_known(loaded, {}).simulated, 93750us);
}

TEST(PrecisionWatch, WhatIsNotKnownAtTheGreatestLengthIsCounted) {
  LoadedRun loaded = until_known({});
  loaded.config.training.jitter_cv = 0.3;
  loaded.config.precision->training = 0.0001;
  loaded.config.precision->most = 500ms;
  const observe::PolicyResult result = simulate_known(loaded, {});
  EXPECT_EQ(result.simulated, 500ms);
  EXPECT_FALSE(result.precision->figures.front().reached);
  EXPECT_GT(*result.precision->figures.front().found, 0.0001);
  EXPECT_EQ(result.counters.count("run_precision_not_reached"), 1U);
}

// Jitter of 30 % an iteration. Both intervals hold the rate of a run of 200 s, in which it is known
// to about 0.1 %; the wanted 2 % ends the run long before 200 s.
TEST(PrecisionWatch, AJobThatVariesRunsUntilItsRateIsSure) {
  LoadedRun loaded = small_run({});
  loaded.config.training.jitter_cv = 0.3;
  loaded.config.duration = 200s;
  const double truth = simulate_known(loaded, {}).training.iterations_per_s;
  loaded.config.precision = PrecisionGoal{.training = 0.02, .least = 100ms, .most = 100s};
  const observe::PolicyResult result = simulate_known(loaded, {});
  EXPECT_LT(result.simulated, 20s);
  EXPECT_LE(*result.precision->figures.front().found, 0.02);
  EXPECT_NEAR(result.training.iterations_per_s, truth, 0.02 * truth);
}

// A pass a request, 1.1 ms: the queue M/D/1 at a load of 0.33. Of Erlang's formula: 95 % wait at
// most 0.97 services, so the 95th percentile is 2.17 ms.
TEST(PrecisionWatch, AQueuesPercentileIsThatOfItsClosedForm) {
  LoadedRun loaded = until_known({online("chat", 300)});
  loaded.config.fillers.front().gpus = {{0}};
  loaded.config.precision->latency = 0.02;
  loaded.config.precision->most = 1000s;
  const policy::Registry registry = policies::builtin_policies();
  const PolicyChoice mps = choice("mps", registry);
  RunScenario scenario{.policy = *registry.find("mps"), .parameters = &mps.parameters,
                    .fillers = {0}, .training = false};
  const observe::PolicyResult result = simulate_known(loaded, scenario);
  ASSERT_EQ(result.precision->figures.size(), 1U);
  const observe::KnownFigure& known = result.precision->figures.front();
  EXPECT_EQ(known.figure, "latency_p95");
  EXPECT_EQ(known.filler, "chat");
  EXPECT_TRUE(known.reached);
  EXPECT_LE(*known.found, 0.02);
  const double p95 = to_seconds(result.fillers.front().latency.percentile(95)->value);
  const double load = 300 * 1.1e-3;
  double low = 0, high = 2;  // services waited for; the formula's first two terms
  for (int i = 0; i < 60; ++i) {
    const double x = (low + high) / 2;
    double share = std::exp(load * x);
    if (x >= 1) share -= load * (x - 1) * std::exp(load * (x - 1));
    ((1 - load) * share < 0.95 ? low : high) = x;
  }
  EXPECT_NEAR(p95, (1 + low) * 1.1e-3, 0.02 * p95);
}

// 5,000 a second for two GPUs that serve 909 each: no latency to wait for. Looks at 100, 125, 156,
// 195, 244 ms, of which the last is at twice the first, and 305 ms.
TEST(PrecisionWatch, AnOverloadedFillerEndsNoRunLater) {
  LoadedRun loaded = until_known({online("chat", 5000)});
  const policy::Registry registry = policies::builtin_policies();
  const PolicyChoice mps = choice("mps", registry);
  RunScenario scenario{.policy = *registry.find("mps"), .parameters = &mps.parameters,
                    .fillers = {0}, .training = false};
  const observe::PolicyResult result = simulate_known(loaded, scenario);
  EXPECT_TRUE(result.precision->figures.front().overloaded);
  EXPECT_LE(result.simulated, 306ms);
  EXPECT_EQ(result.counters.count("run_precision_not_reached"), 0U);
}

// A report period of 100 ms: (5 + 1 + 12) of them are the warm-up, 1.5^12 = 130.
TEST(PrecisionWatch, TheWarmUpLastsUntilThePolicyHasSettled) {
  LoadedRun loaded = until_known({offline("filler")});
  const policy::Registry registry = policies::builtin_policies();
  const policy::GivenParameter period{"report_period", "100ms"};
  loaded.config.policies = {
      choice("exclusive", registry),
      {"tgs", *policy::check_parameters(**registry.find("tgs"), {&period, 1}, "", "")}};
  const auto report = run_policies(loaded, registry, {});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->policies[0].warmup, 0ms);
  EXPECT_EQ(report->policies[1].warmup, 1800ms);
  EXPECT_GE(report->policies[1].simulated, 1800ms + 900ms);
}

TEST(PrecisionWatch, AReportSaysHowLongAndHowSure) {
  LoadedRun loaded = until_known({offline("filler"), online("chat", 100)});
  loaded.config.precision->most = 1s;
  const policy::Registry registry = policies::builtin_policies();
  loaded.config.policies = {choice("mps", registry)};
  RunOptions options;
  const auto report = run_policies(loaded, registry, options);
  ASSERT_TRUE(report) << report.error().text();
  const auto named = [](const char* name) {
    return Field(&observe::KnownFigure::figure, std::string(name));
  };
  EXPECT_THAT(report->policies.front().precision->figures,
              ElementsAre(named("training_rate"), named("filler_rate"), named("latency_p95")));
  EXPECT_THAT(observe::report_table(*report, observe::Columns::kFew), HasSubstr("length: mps: "));
  EXPECT_THAT(observe::report_json(*report), HasSubstr("half_width_fraction"));
  options.threads = 2;
  EXPECT_EQ(observe::report_json(*run_policies(loaded, registry, options)),
            observe::report_json(*report));
}

// Each run sees other arrivals: what a filler that keeps up gains is 1, not what arrived by chance.
TEST(PrecisionWatch, AFillerThatKeepsUpIsMeasuredByItsOwnArrivals) {
  LoadedRun loaded = until_known({online("chat", 50)});
  loaded.config.precision->most = 2s;
  const policy::Registry registry = policies::builtin_policies();
  loaded.config.policies = {choice("ideal_spatial", registry)};
  const auto report = run_policies(loaded, registry, {});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_NEAR(*report->policies.front().fillers.front().normalised_to_own_gpu, 1, 0.02);
}

}  // namespace
}  // namespace bubblesim::run
