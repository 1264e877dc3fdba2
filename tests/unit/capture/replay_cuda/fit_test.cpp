// Lines through measured durations.
#include "capture/replay/cuda/stand_in_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace bubblesim::capture::cuda {
namespace {

using namespace std::chrono_literals;

struct Runs {
  std::uint64_t count = 0;
  Measure of(double floor_ns, double loop_ns) {
    return [=, this](double loops) -> Result<double> {
      ++count;
      return floor_ns + loop_ns * loops;
    };
  }
};

TEST(Fit, AStraightLineIsFoundInOneRound) {
  Runs runs;
  const auto fit = fit_loops(runs.of(3'000, 50), 100us, 1'000);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->rounds, 1U);
  EXPECT_NEAR(fit->line.floor_ns, 3'000, 1e-3);
  EXPECT_NEAR(fit->line.loop_ns, 50, 1e-6);
  EXPECT_NEAR(fit->line.loops(100'000), (100'000.0 - 3'000) / 50, 1e-3);  // 1,940
  EXPECT_FALSE(fit->at_floor);
}

TEST(Fit, AGuessThatIsFarOffIsBroughtNearFirst) {
  for (const double guess : {1.0, 1e9}) {
    Runs runs;
    const auto fit = fit_loops(runs.of(3'000, 50), 100us, guess);
    ASSERT_TRUE(fit);
    EXPECT_LE(fit->error, kFitTolerance);
    EXPECT_LE(runs.count, 1U + 10U + 4U);
  }
}

TEST(Fit, AKnownLineThatHoldsCostsOneRun) {
  Runs runs;
  const DurationLine known{3'000, 50};
  const auto fit = fit_loops(runs.of(3'100, 50), 100us, 1, &known);
  ASSERT_TRUE(fit);
  EXPECT_EQ(runs.count, 1U);
  EXPECT_EQ(fit->rounds, 0U);
  EXPECT_NEAR(fit->error, 0.001, 1e-9);  // 100,100 of 100,000
}

TEST(Fit, AKnownLineThatNoLongerHoldsIsMeasuredAgain) {
  Runs runs;
  const DurationLine known{3'000, 50};
  const auto fit = fit_loops(runs.of(3'000, 60), 100us, 1, &known);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->line.loop_ns, 60, 1e-6);
  EXPECT_GE(fit->rounds, 1U);
}

/// On an H200 a kernel 5 % above its floor was tried with 1e9 loops, which lasted over 30 s.
TEST(Fit, JustAboveTheFloorNoiseIsNotTakenForAFlatLine) {
  // The first 400 loops hide behind the start of the blocks; 5 ns of noise rise by chance.
  double most = 0;
  const Measure measure = [&](double loops) -> Result<double> {
    most = std::max(most, loops);
    const double noise = 5 * std::sin(loops);
    return 2'000 + std::max(0.0, 2 * (loops - 400)) + noise;
  };
  for (const auto solo : {2'001ns, 2'004ns, 2'040ns, 2'100ns}) {
    for (const double guess : {1.0, 10.0, 100.0, 350.0}) {
      const auto fit = fit_loops(measure, solo, guess);
      ASSERT_TRUE(fit);
      EXPECT_TRUE(fit->held) << to_ns(solo) << " ns from " << guess << " loops";
    }
  }
  EXPECT_LT(most, 16 * 16 * 650.0);  // 650 loops last 1.25 floors
}

TEST(Fit, WhatIsShorterThanTheFloorIsSaid) {
  Runs runs;
  const auto fit = fit_loops(runs.of(3'000, 50), 1us, 10);
  ASSERT_TRUE(fit);
  EXPECT_TRUE(fit->at_floor);
  EXPECT_NEAR(fit->error, 2.0, 1e-9);  // 3 us for 1 us
}

TEST(Fit, WhatNeverHoldsEndsAfterItsRoundsWithItsError) {
  std::uint64_t runs = 0;
  const Measure steps = [&](double loops) -> Result<double> {
    ++runs;
    return loops < 1'000 ? 50'000.0 : 150'000.0;  // never near 100 us
  };
  const auto fit = fit_loops(steps, 100us, 1'000);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->rounds, kFitRounds);
  EXPECT_NEAR(fit->error, 0.5, 1e-9);
  EXPECT_LE(runs, 1U + 10U + 4U * kFitRounds);
}

/// The mean of 64 durations, of which each is the difference of two times in whole microseconds.
Measure coarse(double floor_ns, double loop_ns) {
  return [=, phase = 0.0](double loops) mutable -> Result<double> {
    double sum = 0;
    for (int run = 0; run < 64; ++run) {
      phase = std::fmod(phase + 618.034, 1'000);
      const double end = phase + floor_ns + loop_ns * loops;
      sum += std::floor(end / 1'000) * 1'000;
    }
    return sum / 64;
  };
}

TEST(Fit, AClockCoarserThanTheKernelIsAveragedOut) {
  const FitLimits limits{2 * 1'000 / std::sqrt(6.0 * 64)};  // 102 ns
  for (const Duration solo : {Duration{3us}, Duration{5us}, Duration{20us}}) {
    const auto fit = fit_loops(coarse(1'500, 40), solo, 10, nullptr, limits);
    ASSERT_TRUE(fit);
    EXPECT_TRUE(fit->held);
    const double solo_ns = double(to_ns(solo));
    EXPECT_NEAR(1'500 + 40 * fit->line.loops(solo_ns), solo_ns, 0.05 * solo_ns + 100);
  }
}

TEST(Fit, PartsOfALoopReachADurationBetweenTwoLoops) {
  Runs runs;
  // 200,704 blocks of which 2,112 are resident: a loop in each of them is 28 us.
  const auto fit = fit_loops(runs.of(109'000, 28'000), 138us, 1);
  ASSERT_TRUE(fit);
  EXPECT_TRUE(fit->held);
  EXPECT_NEAR(fit->line.loops(138'000), 29.0 / 28, 1e-6);
}

TEST(Fit, ALineIsLaidWhereLoopsAreWhatTakesTime) {
  // Starting the blocks takes 122 us; their work is longer from 0.72 loops on.
  const Measure started = [](double loops) -> Result<double> {
    return std::max(122'000.0, 101'000 + 29'000 * loops);
  };
  const auto fit = fit_loops(started, 130us, 5);
  ASSERT_TRUE(fit);
  EXPECT_TRUE(fit->held);
  EXPECT_NEAR(fit->line.loops(130'000), 1, 0.1);
}

TEST(Fit, AtTheFloorTheLineSaysWhatLoopsAdd) {
  Runs runs;
  const auto fit = fit_loops(runs.of(122'000, 28'000), 69us, 1);
  ASSERT_TRUE(fit);
  EXPECT_TRUE(fit->at_floor);
  EXPECT_NEAR(fit->line.floor_ns, 122'000, 1e-6);
  EXPECT_NEAR(fit->line.loop_ns, 28'000, 1e-6);
}

TEST(Fit, TheBestOfItsRoundsIsKept) {
  // No loop, near, three points, the first check: 3 % off. What is measured after that is noise.
  int count = 0;
  const Measure worsens = [&](double loops) -> Result<double> {
    ++count;
    const double exact = 3'000 + 50 * loops;
    return count < 6 ? exact : count == 6 ? 1.03 * exact : 50'000;
  };
  const auto fit = fit_loops(worsens, 100us, (100'000.0 - 3'000) / 50);
  ASSERT_TRUE(fit);
  EXPECT_FALSE(fit->held);
  EXPECT_EQ(fit->rounds, kFitRounds);
  EXPECT_NEAR(fit->error, 0.03, 1e-9);
  EXPECT_NEAR(fit->line.loop_ns, 50, 1e-6);
}

TEST(Fit, DurationsSayInWhichStepsTheClockIsRead) {
  std::vector<double> durations;
  for (int i = 0; i < 20; ++i) durations.push_back(2'816 + 256 * (i % 3));
  EXPECT_EQ(step_of(durations), 256);
  durations.push_back(2'816 + 32);
  EXPECT_EQ(step_of(durations), 32);
  // Nothing is known of a clock by which all durations are equal.
  EXPECT_EQ(step_of(std::vector<double>(100, 2'816)), 0);
  EXPECT_EQ(step_of({2'816, 3'072, 2'816}), 0);
}

TEST(Fit, AMeasurementThatFailsEndsTheFit) {
  const Measure broken = [](double) -> Result<double> { return fail("broken"); };
  EXPECT_FALSE(fit_loops(broken, 100us, 10));
}

}  // namespace
}  // namespace bubblesim::capture::cuda
