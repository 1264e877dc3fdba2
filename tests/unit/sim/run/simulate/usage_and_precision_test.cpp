// Usage over time: what each interval holds, that intervals add up to the report, and that nobody
// notices that it was recorded. Then how long runs of no given length last.
#include <gmock/gmock.h>

#include <cmath>

#include "sim/observe/report.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

using testing::ElementsAre, testing::Field, testing::HasSubstr;

constexpr std::int64_t kMillion = 1'000'000;

/// Every policy beside an offline filler, an online one and fill jobs.
LoadedRun every_mode() {
  return every_policy(
      {offline("batch"), online("chat", 300), queue("jobs", {{5, 3ms}, {4, 30ms}})});
}

RunOptions recording(Duration interval, std::size_t threads = 1) {
  RunOptions options = on_threads(threads);
  options.usage_interval = interval;
  return options;
}

RunScenario with_usage(const observe::UsageSetup& usage) {
  RunScenario scenario;
  scenario.usage = usage;
  return scenario;
}

// Rank 0, 7 ms an iteration: A 0 - 1, B 1 - 2 on 100 SMs, AR 2 - 4 on 20, C 4 - 5 on 100.
TEST(Usage, EachIntervalHoldsWhatRanInIt) {
  const observe::PolicyResult result = simulate(small_run({}), with_usage({.interval = 3500us}));
  ASSERT_EQ(result.usage.size(), 2U);
  const auto& intervals = result.usage.front().intervals;
  ASSERT_EQ(intervals.size(), 20U);  // 70 / 3.5
  for (std::size_t i = 0; i < 20; i += 2) {
    EXPECT_EQ(intervals[i].busy, 3500us);
    EXPECT_EQ(intervals[i].training_busy, 3500us);
    EXPECT_EQ(intervals[i].training_sm_ns, 230 * kMillion);  // 2 x 100 + 1.5 x 20
    EXPECT_EQ(intervals[i + 1].busy, 1500us);
    EXPECT_EQ(intervals[i + 1].training_sm_ns, 110 * kMillion);  // 0.5 x 20 + 100
    EXPECT_EQ(intervals[i].filler_busy, Duration{});
    EXPECT_EQ(intervals[i].filler_sm_ns, 0);
    EXPECT_EQ(intervals[i].memory, Bytes{10'000'000'000});
  }
}

TEST(Usage, TheLastIntervalEndsWithTheRun) {
  LoadedRun loaded = for_iterations(small_run({}), 3);
  const observe::PolicyResult result = simulate(loaded, with_usage({.interval = 5ms}));
  std::vector<Duration> ends;
  for (const auto& interval : result.usage.back().intervals)
    ends.push_back(interval.to - kSimStart);
  EXPECT_EQ(ends, (std::vector<Duration>{5ms, 10ms, 15ms, 20ms, 21ms}));
}

TEST(Usage, BeyondTheLimitItEndsEarlyAndIsCounted) {
  const observe::PolicyResult result =
      simulate(small_run({}), with_usage({.interval = 10ms, .most = 3}));
  ASSERT_EQ(result.usage.front().intervals.size(), 3U);
  EXPECT_EQ(result.usage.front().intervals.back().to, kSimStart + 30ms);
  EXPECT_EQ(result.counters.count("usage_intervals_dropped"), 2U * 4U);  // GPUs x 30 to 70
  EXPECT_EQ(result.simulated, 70ms);
  EXPECT_TRUE(simulate(small_run({}), with_usage({.interval = 10ms, .most = 7})).counters.empty());
}

/// Of one GPU: lie end to end, with a boundary at the end of the warm-up; after it they add up to
/// what the report has.
void expect_sums(const observe::PolicyResult& result, std::size_t gpu) {
  SCOPED_TRACE(result.policy + ", GPU " + std::to_string(gpu));
  const observe::GpuUsage& usage = result.usage[gpu];
  const observe::GpuUse& use = result.gpus[gpu];
  const SimTime warmup = kSimStart + result.warmup;
  SimTime last = kSimStart;
  observe::UsageInterval sum;
  for (const observe::UsageInterval& interval : usage.intervals) {
    EXPECT_EQ(interval.from, last);
    EXPECT_TRUE(interval.to <= warmup || interval.from >= warmup);
    EXPECT_LE(interval.memory, use.memory_high_water);
    last = interval.to;
    if (interval.from < warmup) continue;
    sum.busy += interval.busy;
    sum.training_busy += interval.training_busy;
    sum.training_sm_ns += interval.training_sm_ns;
    sum.filler_sm_ns += interval.filler_sm_ns;
  }
  EXPECT_EQ(last - kSimStart, result.simulated);
  const Duration window = result.simulated - result.warmup;
  EXPECT_EQ(to_seconds(sum.busy) / to_seconds(window), use.busy_fraction);
  EXPECT_EQ(window - sum.training_busy, use.bubbles.back().time);  // "idle"
  const double sm_ns = static_cast<double>(window.count()) * usage.sm_count;
  EXPECT_NEAR(static_cast<double>(sum.training_sm_ns), use.training_sm_fraction * sm_ns, 1.001);
  EXPECT_NEAR(static_cast<double>(sum.filler_sm_ns), use.filler_sm_fraction * sm_ns, 1.001);
}

TEST(Usage, IntervalsAddUpToTheReportUnderEveryPolicyWithAndWithoutWarmUp) {
  for (const Duration warmup : {Duration{}, Duration{20ms}}) {
    LoadedRun loaded = every_mode();
    loaded.config.warmup = warmup;
    const observe::RunReport report = report_of(loaded, recording(3ms));
    ASSERT_EQ(report.policies.size(), registry().all().size());
    for (const observe::PolicyResult& result : report.policies) {
      ASSERT_EQ(result.usage.size(), 2U);
      expect_sums(result, 0);
      expect_sums(result, 1);
    }
  }
}

TEST(Usage, RecordingItChangesNoByteOfTheReport) {
  const LoadedRun loaded = every_mode();
  const observe::RunReport without = report_of(loaded);
  EXPECT_EQ(observe::usage_rows(without), "");
  const observe::RunReport with = report_of(loaded, recording(333us));
  EXPECT_EQ(observe::report_json(with), observe::report_json(without));
  EXPECT_EQ(observe::csv_rows(with), observe::csv_rows(without));
  EXPECT_EQ(observe::report_table(with, observe::Columns::kAll),
            observe::report_table(without, observe::Columns::kAll));
}

// The GPUs run beside each other, in windows that end at boundaries.
TEST(Usage, ItIsTheSameForAnyNumberOfThreadsAndEventByEvent) {
  LoadedRun loaded = small_run({offline("batch"), online("chat", 300)}, {"mps", "specinf"});
  const std::string fine = observe::usage_rows(report_of(loaded, recording(1ms)));
  EXPECT_EQ(observe::usage_rows(report_of(loaded, recording(1ms, 4))), fine);
  RunScenario in_order;
  in_order.gpus.windows = engine::Windows::kNever;
  RunScenario in_windows;
  in_windows.gpus.windows = engine::Windows::kAlways;
  std::vector<std::string> rows;
  for (RunScenario* scenario : {&in_order, &in_windows}) {
    scenario->usage.interval = 1ms;
    Simulation simulation(loaded, *scenario);
    observe::RunReport report;
    report.policies.push_back(*simulation.run());
    rows.push_back(observe::usage_rows(report));
    EXPECT_EQ(simulation.conductor().windows() > 0, scenario == &in_windows);
  }
  EXPECT_EQ(rows[0], rows[1]);
}

// A job of 1 GB is submitted at 3 ms and has ended by 65 ms; training has 10 GB.
TEST(Usage, MemoryFollowsFillJobs) {
  FillerConfig filler = queue("jobs", {{2, 3ms}});
  filler.gpus = {{0}};
  LoadedRun loaded = small_run({filler}, {"mps"});
  const observe::RunReport report = report_of(loaded, recording(1ms));
  const auto& job = report.policies.front().fillers.front().jobs->list.front();
  ASSERT_TRUE(job.ended);
  for (const auto& interval : report.policies.front().usage.front().intervals) {
    const Duration now = interval.to - kSimStart;
    const bool there = now >= job.placed && now < *job.ended;
    EXPECT_EQ(interval.memory, Bytes{there ? 11'000'000'000U : 10'000'000'000U}) << now.count();
  }
}

// 70 ms in 1,000,000 / (2 GPUs x 1 policy) intervals: 140 ns each.
TEST(Usage, TooShortAnIntervalIsRefusedWithTheShortestAllowed) {
  LoadedRun loaded = small_run({}, {"exclusive"});
  const RunOptions options = recording(139ns);
  EXPECT_THAT(error_of(run_policies(loaded, registry(), options)).text(),
              HasSubstr("found 139ns, expected 140ns or more"));
  loaded.config.duration.reset();
  loaded.config.iterations = 10;  // 70 ms too, but nobody knows before
  EXPECT_THAT(error_of(run_policies(loaded, registry(), options)).text(),
              HasSubstr("found 139ns, expected 140ns or more"));
}

// Runs that end by themselves: when their figures are known.

/// The small run, until it is known: at least 100 ms of it, at most 10 s.
LoadedRun until_known(const std::vector<FillerConfig>& fillers) {
  LoadedRun loaded = small_run(fillers);
  loaded.config.precision = PrecisionGoal{.least = 100ms, .most = 10s};
  loaded.config.duration = loaded.config.warmup + 10s;
  return loaded;
}

/// Its fillers without training, under mps.
observe::PolicyResult fillers_under_mps(const LoadedRun& loaded) {
  const PolicyChoice mps = choice("mps");
  RunScenario scenario = all_of(loaded, *registry().find("mps"));
  scenario.parameters = &mps.parameters;
  scenario.training = false;
  return simulate(loaded, scenario);
}

// 7 ms an iteration, always: the 14 of the first 100 ms say all, and so does the look after it.
TEST(PrecisionWatch, ATrainingThatNeverVariesIsKnownAtTheSecondLook) {
  LoadedRun loaded = until_known({});
  loaded.config.warmup = 20ms;
  const observe::PolicyResult result = simulate(loaded);
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
  EXPECT_EQ(simulate(loaded).simulated, 93750us);
}

TEST(PrecisionWatch, WhatIsNotKnownAtTheGreatestLengthIsCounted) {
  LoadedRun loaded = until_known({});
  loaded.config.training.jitter_cv = 0.3;
  loaded.config.precision->training = 0.0001;
  loaded.config.precision->most = 500ms;
  const observe::PolicyResult result = simulate(loaded);
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
  const double truth = simulate(loaded).training.iterations_per_s;
  loaded.config.precision = PrecisionGoal{.training = 0.02, .least = 100ms, .most = 100s};
  const observe::PolicyResult result = simulate(loaded);
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
  const observe::PolicyResult result = fillers_under_mps(loaded);
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
  const observe::PolicyResult result = fillers_under_mps(loaded);
  EXPECT_TRUE(result.precision->figures.front().overloaded);
  EXPECT_LE(result.simulated, 306ms);
  EXPECT_EQ(result.counters.count("run_precision_not_reached"), 0U);
}

// A report period of 100 ms: (5 + 1 + 12) of them are the warm-up, 1.5^12 = 130. A timeline of the
// first 100 ms after the config's warm-up, which is none, begins after it.
TEST(PrecisionWatch, TheWarmUpLastsUntilThePolicyHasSettled) {
  LoadedRun loaded = until_known({offline("filler")});
  const policy::GivenParameter period{"report_period", "100ms"};
  loaded.config.policies = {
      choice("exclusive"),
      {"tgs", *policy::check_parameters(**registry().find("tgs"), {&period, 1}, "", "")}};
  observe::TimelineRecorder timeline;
  timeline.set_window({0ms, 100ms});
  RunOptions options;
  options.timeline_of = 1;
  options.timeline = &timeline;
  const auto report = report_of(loaded, options);
  EXPECT_EQ(report.policies[0].warmup, 0ms);
  EXPECT_EQ(report.policies[1].warmup, 1800ms);
  EXPECT_GE(report.policies[1].simulated, 1800ms + 900ms);
  EXPECT_EQ(timeline.settled(), kSimStart + 1800ms);
  ASSERT_FALSE(timeline.slices().empty());
  for (const observe::Slice& slice : timeline.slices()) {
    EXPECT_GE(slice.end, kSimStart + 1800ms);
    EXPECT_LE(slice.start, kSimStart + 1900ms);
  }
}

TEST(PrecisionWatch, AReportSaysHowLongAndHowSure) {
  LoadedRun loaded = until_known({offline("filler"), online("chat", 100)});
  loaded.config.precision->most = 1s;
  loaded.config.policies = {choice("mps")};
  RunOptions options;
  const auto report = report_of(loaded, options);
  const auto named = [](const char* name) {
    return Field(&observe::KnownFigure::figure, std::string(name));
  };
  EXPECT_THAT(report.policies.front().precision->figures,
              ElementsAre(named("training_rate"), named("filler_rate"), named("latency_p95")));
  EXPECT_THAT(observe::report_table(report, observe::Columns::kAll), HasSubstr("length: mps: "));
  EXPECT_THAT(observe::report_json(report), HasSubstr("half_width_fraction"));
  options.threads = 2;
  EXPECT_EQ(observe::report_json(report_of(loaded, options)), observe::report_json(report));
}

// Each run sees other arrivals: what a filler that keeps up gains is 1, not what arrived by chance.
TEST(PrecisionWatch, AFillerThatKeepsUpIsMeasuredByItsOwnArrivals) {
  LoadedRun loaded = until_known({online("chat", 50)});
  loaded.config.precision->most = 2s;
  loaded.config.policies = {choice("ideal_spatial")};
  const auto report = report_of(loaded);
  EXPECT_NEAR(*report.policies.front().fillers.front().normalised_to_own_gpu, 1, 0.02);
}

}  // namespace
}  // namespace bubblesim::run
