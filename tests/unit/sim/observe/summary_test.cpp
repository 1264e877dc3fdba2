#include "sim/observe/summary.hpp"

#include <gtest/gtest.h>

#include "tests/unit/sim/observe/sample_report.hpp"

namespace bubblesim::observe {
namespace {

using std::chrono::milliseconds, std::chrono::seconds;

RankIterations rank_of_ms(std::uint32_t rank, const std::vector<int>& times,
                          std::size_t first_counted = 0) {
  RankIterations iterations{rank, {}, first_counted};
  for (const int time : times) iterations.times.push_back(milliseconds{time});
  return iterations;
}

// Two ranks, four iterations of 100 + 300 + 150 + 250 = 800 ms: 200 ms each, 5 a second.
TEST(SummariseTraining, RatesAreOfTheMeanIteration) {
  const auto result = summarise_training(
      {rank_of_ms(0, {100, 300}), rank_of_ms(1, {150, 250})}, {8.0, 10.0});
  EXPECT_EQ(result.iterations, 2U);
  EXPECT_EQ(result.mean_iteration, milliseconds{200});
  EXPECT_EQ(result.min_iteration, milliseconds{100});
  EXPECT_EQ(result.max_iteration, milliseconds{300});
  EXPECT_DOUBLE_EQ(result.iterations_per_s, 5);
  EXPECT_DOUBLE_EQ(*result.samples_per_s, 40);
  EXPECT_DOUBLE_EQ(*result.normalised_to_alone, 0.5);
}

TEST(SummariseTraining, IterationsOfTheWarmUpAreKeptButNotCounted) {
  const auto result = summarise_training({rank_of_ms(0, {900, 100, 100}, 1)}, {});
  EXPECT_EQ(result.iterations, 2U);
  EXPECT_EQ(result.max_iteration, milliseconds{100});
  EXPECT_EQ(result.ranks[0].times.size(), 3U);
}

TEST(SummariseTraining, CountsIterationsThatEveryRankFinished) {
  EXPECT_EQ(summarise_training({rank_of_ms(0, {1, 1, 1}), rank_of_ms(1, {1, 1})}, {}).iterations,
            2U);
}

// Passes of two iterations, 100 and 300 ms: of five finished ones, the last four are two passes.
TEST(SummariseTraining, MeansAreOverWholePasses) {
  RankIterations rank = rank_of_ms(0, {300, 100, 300, 100, 300});
  rank.per_pass = 2;
  const auto result = summarise_training({rank}, {});
  EXPECT_EQ(result.mean_iteration, milliseconds{200});
  EXPECT_EQ(result.iterations, 5U);
}

// Ten iterations of 100 ms, a checkpoint after every three. The first fault strikes after four, of
// which one is done again; the second after nine, eight of them progress: two again.
TEST(SummariseTraining, WhatIsDoneAgainAfterFaultsIsNoGoodput) {
  TrainingScale scale;
  scale.faults = {milliseconds{450}, milliseconds{950}};
  scale.checkpoint_every = 3;
  const std::vector<int> ten(10, 100);
  const auto result = summarise_training({rank_of_ms(0, ten), rank_of_ms(1, ten)}, scale);
  EXPECT_EQ(result.redone, 3U);
  EXPECT_DOUBLE_EQ(*result.goodput_per_s, 7);
  EXPECT_DOUBLE_EQ(result.iterations_per_s, 10);
  // Of the last five iterations, those after a warm-up, the second fault's alone count.
  EXPECT_EQ(summarise_training({rank_of_ms(0, ten, 5)}, scale).redone, 2U);
  EXPECT_FALSE(summarise_training({rank_of_ms(0, ten)}, {}).goodput_per_s.has_value());
}

// Ten iterations of 100 ms, then a fault at 1.03 s whose restart outlasts the run of 2 s: its time
// is lost, and with it the one of the ten that no checkpoint has.
TEST(SummariseTraining, AnOutageThatOutlastsTheRunCostsItsTime) {
  TrainingScale scale;
  scale.faults = {milliseconds{1030}};
  scale.checkpoint_every = 3;
  scale.simulated = seconds{2};
  scale.samples_per_iteration = 8;
  const RankIterations ten = rank_of_ms(0, std::vector<int>(10, 100));
  const auto result = summarise_training({ten, ten}, scale);
  EXPECT_EQ(result.mean_iteration, milliseconds{100});
  EXPECT_DOUBLE_EQ(result.iterations_per_s, 5);
  EXPECT_DOUBLE_EQ(*result.samples_per_s, 40);
  EXPECT_EQ(result.redone, 1U);
  EXPECT_DOUBLE_EQ(*result.goodput_per_s, 4.5);
  scale.faults = {milliseconds{970}};  // in an iteration that ended
  EXPECT_DOUBLE_EQ(summarise_training({ten}, scale).iterations_per_s, 10);
  EXPECT_EQ(summarise_training({rank_of_ms(0, {})}, scale).goodput_per_s, 0.0);
}

// A fault strikes at 350 ms. Where the iteration that is struck still ends, and others after it,
// they are fewer the longer the restart lasts.
TEST(SummariseTraining, GoodputNeverRisesWithALongerRestart) {
  TrainingScale scale;
  scale.faults = {milliseconds{350}};
  scale.checkpoint_every = 2;
  scale.simulated = seconds{1};
  double before = 100;
  for (int restart = 0; restart < 1000; ++restart) {
    RankIterations rank = rank_of_ms(0, {100, 100, 100});
    for (int end = 400 + restart, last = 300; end <= 1000; end += 100) {
      rank.times.push_back(milliseconds{end - last});
      last = end;
    }
    const double goodput = *summarise_training({rank}, scale).goodput_per_s;
    EXPECT_LE(goodput, before + 1e-9) << restart;
    before = goodput;
  }
  EXPECT_DOUBLE_EQ(before, 2);
}

// Less than a pass is all there is.
TEST(SummariseTraining, MeansAreOverWhatThereIsIfNoPassWasFinished) {
  RankIterations rank = rank_of_ms(0, {300, 100});
  rank.per_pass = 3;
  EXPECT_EQ(summarise_training({rank}, {}).mean_iteration, milliseconds{200});
}

// Alone the pass is 100, 100 and 400 ms. Beside a filler the first two took 120 and 130 ms: 200 of
// 250 ms are kept, whatever the mean of the whole pass is.
TEST(SummariseTraining, LessThanAPassIsComparedWithTheSameIterationsAlone) {
  RankIterations alone = rank_of_ms(0, {100, 100, 400, 100, 100, 400});
  RankIterations rank = rank_of_ms(0, {120, 130});
  alone.per_pass = rank.per_pass = 3;
  EXPECT_EQ(pass_of({alone}), (std::vector<Duration>{milliseconds{100}, milliseconds{100},
                                                     milliseconds{400}}));
  TrainingScale scale{{}, 5.0};
  scale.alone_pass = pass_of({alone});
  EXPECT_DOUBLE_EQ(*summarise_training({rank}, scale).normalised_to_alone, 0.8);
  EXPECT_EQ(ranks_within_pass({rank, alone}), 1U);
  rank.times.push_back(milliseconds{350});  // a whole pass, 600 ms of three: 5 a second
  EXPECT_DOUBLE_EQ(*summarise_training({rank}, scale).normalised_to_alone, 1);
  EXPECT_EQ(ranks_within_pass({rank}), 0U);
}

TEST(SummariseTraining, NothingFinishedIsNothingOfWhatItDoesAlone) {
  const auto result = summarise_training({rank_of_ms(0, {})}, {8.0, 10.0});
  EXPECT_EQ(result.iterations, 0U);
  EXPECT_EQ(result.iterations_per_s, 0);
  EXPECT_EQ(result.normalised_to_alone, 0.0);
  EXPECT_FALSE(summarise_training({}, {8.0, 10.0}).normalised_to_alone);  // no training at all
}

TEST(FirstAfter, IsTheFirstIterationThatEndsInsideTheWindow) {
  const std::vector<Duration> times{milliseconds{40}, milliseconds{60}, milliseconds{10}};
  EXPECT_EQ(first_after(times, Duration{}), 0U);
  EXPECT_EQ(first_after(times, milliseconds{100}), 2U);  // the second ends at 100, not after it
  EXPECT_EQ(first_after(times, milliseconds{110}), 3U);
}

// 30 + 10 requests in 2 s: 20 a second, over two GPUs that could do 25 a second each.
TEST(SummariseFiller, NormalisesToAsManyGpusAsItWasGiven) {
  FillerResult filler;
  filler.instances = {{GpuId{0}, true, "", 15, 30, Bytes{100}},
                      {GpuId{1}, true, "", 5, 10, Bytes{50}}};
  summarise_filler(filler, seconds{2}, 25);
  EXPECT_EQ(filler.passes, 20U);
  EXPECT_EQ(filler.requests_completed, 40U);
  EXPECT_EQ(filler.memory, Bytes{150});
  EXPECT_DOUBLE_EQ(filler.requests_per_s, 20);
  EXPECT_DOUBLE_EQ(*filler.normalised_to_own_gpu, 0.4);
}

FillerResult with_backlog(std::uint64_t before, std::uint64_t arrived, std::uint64_t unfinished) {
  FillerResult filler;
  filler.mode = FillerMode::kOnline;
  filler.requests_before = before;
  filler.requests_arrived = arrived;
  filler.requests_completed = before + arrived - unfinished;
  filler.requests_unfinished = unfinished;
  return filler;
}

// 100 arrivals: three deviations are 30, and a batch of 4 may be on its way.
TEST(IsOverloaded, IsABacklogThatGrowsByMoreThanChanceAndABatch) {
  EXPECT_FALSE(is_overloaded(with_backlog(10, 100, 44), {4, seconds{1}}, seconds{60}));
  EXPECT_TRUE(is_overloaded(with_backlog(10, 100, 45), {4, seconds{1}}, seconds{60}));
  EXPECT_FALSE(is_overloaded(with_backlog(500, 100, 450), {4, seconds{59}}, seconds{60}));
}

TEST(IsOverloaded, IsAFillerThatServesNothingForHalfOfTheWindow) {
  EXPECT_TRUE(is_overloaded(with_backlog(0, 1, 1), {1, seconds{30}}, seconds{60}));
  EXPECT_FALSE(is_overloaded(with_backlog(0, 1, 1), {1, seconds{29}}, seconds{60}));
  EXPECT_FALSE(is_overloaded(with_backlog(0, 0, 0), {1, {}}, seconds{60}));
}

// 2 % of 100 arrivals are 2 requests.
TEST(KeepsUp, IsABacklogThatGrowsByAShareOfTheArrivalsAtMost) {
  EXPECT_TRUE(keeps_up(with_backlog(10, 100, 12), 0.02));
  EXPECT_FALSE(keeps_up(with_backlog(10, 100, 13), 0.02));
  EXPECT_TRUE(keeps_up(with_backlog(10, 100, 0), 0.02));
}

TEST(RecoveredOverGpus, WeighsEachGpuByItsBubbles) {
  GpuUse small;
  small.bubble_fraction = 0.1;
  small.recovered_fraction = 1;
  GpuUse large;
  large.bubble_fraction = 0.3;
  large.recovered_fraction = 0.5;
  EXPECT_DOUBLE_EQ(recovered_over_gpus({small, large}), 0.625);  // (0.1 + 0.15) / 0.4
  EXPECT_EQ(recovered_over_gpus({}), 0);
  EXPECT_DOUBLE_EQ(mean_over_gpus({small, large}, &GpuUse::bubble_fraction), 0.2);
}

TEST(Summary, EnergyOfAnIterationLeavesFillersOut) {
  // (600 - 100) J in 2 s at 4 iterations a second.
  const PolicyResult policy = metered_report().policies.front();
  const auto power = power_of(policy);
  ASSERT_TRUE(power.has_value());
  EXPECT_DOUBLE_EQ(power->iteration_j.value(), 62.5);
  EXPECT_DOUBLE_EQ(power->mean_w, 300);
  EXPECT_DOUBLE_EQ(power->peak_w, 390);
  EXPECT_DOUBLE_EQ(request_energy(policy.fillers.front()).value(), 25);  // 100 J, 4 requests
}

TEST(Summary, WhereNothingIsMeteredThereIsNoPower) {
  const PolicyResult policy = sample_report().policies.front();
  EXPECT_FALSE(power_of(policy).has_value());
  EXPECT_FALSE(request_energy(policy.fillers.front()).has_value());
}

}  // namespace
}  // namespace bubblesim::observe
