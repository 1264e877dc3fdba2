// Lines through measured durations.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "capture/replay/cuda/device_context.hpp"
#include "capture/replay/cuda/residency.hpp"
#include "capture/replay/cuda/stand_in_fit.hpp"
#include "capture/replay/cuda/stand_in_mix.hpp"
#include "tests/fault.hpp"

namespace bubblesim::capture::cuda {
namespace {

using namespace std::chrono_literals;

// An H100's facts, for tests without a driver.

DeviceFacts h100() {
  DeviceFacts facts;
  facts.name = "H100";
  facts.uuid = "GPU-0";
  facts.driver_version = 13000;
  facts.sm_count = 132;
  facts.clock_khz = 1'980'000;
  facts.dram_bytes_per_second = 3'352'320'000'000;
  facts.l2_bytes = 50 << 20;
  facts.threads_per_block = 1024;
  facts.threads_per_sm = 2048;
  facts.blocks_per_sm = 32;
  facts.registers_per_sm = 65'536;
  facts.shared_bytes_per_sm = 233'472;
  facts.shared_bytes_per_block = 232'448;
  facts.reserved_shared_bytes = 1'024;
  facts.most_blocks = {2'147'483'647, 65'535, 65'535};
  facts.most_threads = {1'024, 1'024, 64};
  return facts;
}

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
  const auto fit = must(fit_loops(runs.of(3'000, 50), 100us, 1'000));
  EXPECT_EQ(fit.rounds, 1U);
  EXPECT_NEAR(fit.line.floor_ns, 3'000, 1e-3);
  EXPECT_NEAR(fit.line.loop_ns, 50, 1e-6);
  EXPECT_NEAR(fit.line.loops(100'000), (100'000.0 - 3'000) / 50, 1e-3);  // 1,940
  EXPECT_FALSE(fit.at_floor);
}

TEST(Fit, AGuessThatIsFarOffIsBroughtNearFirst) {
  for (const double guess : {1.0, 1e9}) {
    Runs runs;
    const auto fit = must(fit_loops(runs.of(3'000, 50), 100us, guess));
    EXPECT_LE(fit.error, kFitTolerance);
    EXPECT_LE(runs.count, 1U + 10U + 4U);
  }
}

TEST(Fit, AKnownLineThatHoldsCostsOneRun) {
  Runs runs;
  const DurationLine known{3'000, 50};
  const auto fit = must(fit_loops(runs.of(3'100, 50), 100us, 1, &known));
  EXPECT_EQ(runs.count, 1U);
  EXPECT_EQ(fit.rounds, 0U);
  EXPECT_NEAR(fit.error, 0.001, 1e-9);  // 100,100 of 100,000
}

TEST(Fit, AKnownLineThatNoLongerHoldsIsMeasuredAgain) {
  Runs runs;
  const DurationLine known{3'000, 50};
  const auto fit = must(fit_loops(runs.of(3'000, 60), 100us, 1, &known));
  EXPECT_NEAR(fit.line.loop_ns, 60, 1e-6);
  EXPECT_GE(fit.rounds, 1U);
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
      const auto fit = must(fit_loops(measure, solo, guess));
      EXPECT_TRUE(fit.held) << to_ns(solo) << " ns from " << guess << " loops";
    }
  }
  EXPECT_LT(most, 16 * 16 * 650.0);  // 650 loops last 1.25 floors
}

TEST(Fit, WhatIsShorterThanTheFloorIsSaid) {
  Runs runs;
  const auto fit = must(fit_loops(runs.of(3'000, 50), 1us, 10));
  EXPECT_TRUE(fit.at_floor);
  EXPECT_NEAR(fit.error, 2.0, 1e-9);  // 3 us for 1 us
}

TEST(Fit, WhatNeverHoldsEndsAfterItsRoundsWithItsError) {
  std::uint64_t runs = 0;
  const Measure steps = [&](double loops) -> Result<double> {
    ++runs;
    return loops < 1'000 ? 50'000.0 : 150'000.0;  // never near 100 us
  };
  const auto fit = must(fit_loops(steps, 100us, 1'000));
  EXPECT_EQ(fit.rounds, kFitRounds);
  EXPECT_NEAR(fit.error, 0.5, 1e-9);
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
    const auto fit = must(fit_loops(coarse(1'500, 40), solo, 10, nullptr, limits));
    EXPECT_TRUE(fit.held);
    const double solo_ns = double(to_ns(solo));
    EXPECT_NEAR(1'500 + 40 * fit.line.loops(solo_ns), solo_ns, 0.05 * solo_ns + 100);
  }
}

TEST(Fit, PartsOfALoopReachADurationBetweenTwoLoops) {
  Runs runs;
  // 200,704 blocks of which 2,112 are resident: a loop in each of them is 28 us.
  const auto fit = must(fit_loops(runs.of(109'000, 28'000), 138us, 1));
  EXPECT_TRUE(fit.held);
  EXPECT_NEAR(fit.line.loops(138'000), 29.0 / 28, 1e-6);
}

TEST(Fit, ALineIsLaidWhereLoopsAreWhatTakesTime) {
  // Starting the blocks takes 122 us; their work is longer from 0.72 loops on.
  const Measure started = [](double loops) -> Result<double> {
    return std::max(122'000.0, 101'000 + 29'000 * loops);
  };
  const auto fit = must(fit_loops(started, 130us, 5));
  EXPECT_TRUE(fit.held);
  EXPECT_NEAR(fit.line.loops(130'000), 1, 0.1);
}

TEST(Fit, AtTheFloorTheLineSaysWhatLoopsAdd) {
  Runs runs;
  const auto fit = must(fit_loops(runs.of(122'000, 28'000), 69us, 1));
  EXPECT_TRUE(fit.at_floor);
  EXPECT_NEAR(fit.line.floor_ns, 122'000, 1e-6);
  EXPECT_NEAR(fit.line.loop_ns, 28'000, 1e-6);
}

TEST(Fit, TheBestOfItsRoundsIsKept) {
  // No loop, near, three points, the first check: 3 % off. What is measured after that is noise.
  int count = 0;
  const Measure worsens = [&](double loops) -> Result<double> {
    ++count;
    const double exact = 3'000 + 50 * loops;
    return count < 6 ? exact : count == 6 ? 1.03 * exact : 50'000;
  };
  const auto fit = must(fit_loops(worsens, 100us, (100'000.0 - 3'000) / 50));
  EXPECT_FALSE(fit.held);
  EXPECT_EQ(fit.rounds, kFitRounds);
  EXPECT_NEAR(fit.error, 0.03, 1e-9);
  EXPECT_NEAR(fit.line.loop_ns, 50, 1e-6);
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

// Fits in a file.

class FitCacheFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  void save_one() {
    FitCache cache(path_, h100());
    cache.put(key_, {{2'000.25, 0.1}, {1, 2, 3, 0, 77}, 0.0125, true});
    ASSERT_TRUE(cache.save());
  }
  FitKey key_ = [] {
    FitKey key;
    key.form.shape.grid = {7, 8, 9};
    key.form.dram_share = 0.1;
    key.solo = Duration{123'456};
    return key;
  }();
  std::string path_ = ::testing::TempDir() + "bubblesim-cache-" + std::to_string(::getpid());
};

TEST_F(FitCacheFile, WhatWasPutIsFoundExactly) {
  save_one();
  const FitCache cache(path_, h100());
  const CachedFit* found = cache.find(key_);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->line.floor_ns, 2'000.25);
  EXPECT_EQ(found->line.loop_ns, 0.1);
  EXPECT_EQ(found->mix, (Mix{1, 2, 3, 0, 77}));
  EXPECT_EQ(found->error, 0.0125);
  EXPECT_TRUE(found->at_floor);
  FitKey other = key_;
  other.solo += Duration{1};
  EXPECT_EQ(cache.find(other), nullptr);
}

TEST_F(FitCacheFile, AnotherGpuOrDriverFindsNothing) {
  save_one();
  DeviceFacts facts = h100();
  facts.uuid = "GPU-1";
  EXPECT_EQ(FitCache(path_, facts).find(key_), nullptr);
  facts = h100();
  ++facts.driver_version;
  EXPECT_EQ(FitCache(path_, facts).find(key_), nullptr);
}

TEST_F(FitCacheFile, ADamagedFileIsEmpty) {
  save_one();
  std::ofstream(path_, std::ios::app) << "1 2 three\n";
  EXPECT_EQ(FitCache(path_, h100()).find(key_), nullptr);
}

TEST_F(FitCacheFile, WithoutAPathNothingIsWritten) {
  FitCache cache("", h100());
  cache.put(key_, {});
  EXPECT_TRUE(cache.save());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(FitCacheFile, APlaceThatCannotBeWrittenIsSaid) {
  FitCache cache("/nonexistent/folder/fits", h100());
  EXPECT_FALSE(cache.save());
}

// What a loop of a stand-in is made of.
StandInShape full() {
  traces::LaunchShape shape;
  shape.grid = {132 * 8, 1, 1};
  shape.block = {256, 1, 1};
  return shape_stand_in(h100(), shape);
}

TEST(Mix, SharesThatAFormLeavesOutComeFromItsBound) {
  KernelForm form;
  form.bound = program::KernelClass::kMemory;
  EXPECT_EQ(shares_of(form).dram, 0.8);
  form.dram_share = 0.5;
  EXPECT_EQ(shares_of(form).dram, 0.5);
  EXPECT_EQ(shares_of(form).issue, 0.2);
}

TEST(Mix, ManyWarpsNeedSparseUnitsForTheShareThatOneReachesWithDenseOnes) {
  KernelForm form;
  form.issue_share = 0.25;
  // 8 blocks of 8 warps on 4 schedulers: 16 warps each; 0.25 / 16 is below a shuffle in 24 cycles.
  EXPECT_EQ(mix_of(h100(), form, full()).sparse, 4U);
  StandInShape lone = full();
  lone.grid = {132, 1, 1};
  lone.block = {128, 1, 1};
  // One warp a scheduler: 6 issues in 24 cycles are 0.25.
  EXPECT_EQ(mix_of(h100(), form, lone).dense, 4U);
  form.issue_share = 1;
  EXPECT_EQ(mix_of(h100(), form, lone).wide, 4U);
}

TEST(Mix, MatrixWorkIsDoneByTensorUnits) {
  KernelForm form;
  form.tensor = true;
  EXPECT_GT(mix_of(h100(), form, full()).tensor, 0U);
  EXPECT_EQ(mix_of(h100(), form, full()).wide, 0U);
}

TEST(Mix, TrafficGoesByShareTimeAndLoops) {
  KernelForm form;
  form.dram_share = 0.5;
  // 0.5 * 0.836 * 3.35232e12 bytes a second * 1 ms.
  EXPECT_NEAR(wanted_traffic(h100(), form, 1ms), 1.4013e9, 1e5);
  Mix mix;
  mix.memory_rate = kRateUnit / 2;
  // 100 loops: 50 steps of 80 bytes in each of 1,056 * 256 threads.
  EXPECT_NEAR(traffic_of(full(), mix, 100), 50.0 * 80 * 1056 * 256, 1);
}

TEST(Mix, TheFirstGuessOfTrafficFillsTheShareInTheNominalTimeOfALoop) {
  KernelForm form;
  form.dram_share = 0.5;
  const Mix mix = mix_of(h100(), form, full());
  const double loops = 1e-3 / (96 / 1.98e9);
  EXPECT_NEAR(traffic_of(full(), mix, loops) / wanted_traffic(h100(), form, 1ms), 1, 0.01);
}

// How many blocks an SM holds, and the variant that gives the same number.
TEST(Residency, EachResourceLimitsByItself) {
  const DeviceFacts facts = h100();
  EXPECT_EQ(blocks_per_sm(facts, 32, 0, 0), 32U);      // blocks of an SM
  EXPECT_EQ(blocks_per_sm(facts, 256, 0, 0), 8U);      // 2,048 threads
  EXPECT_EQ(blocks_per_sm(facts, 256, 128, 0), 2U);    // 128 * 32 = 4,096 a warp: 16 warps
  EXPECT_EQ(blocks_per_sm(facts, 384, 168, 0), 1U);    // 5,376 a warp: 12 warps
  EXPECT_EQ(blocks_per_sm(facts, 128, 0, 99'000), 2U); // 233,472 / 100,096
}

TEST(Residency, AVariantOfTheSameResidencyIsChosenForRealKernels) {
  struct Case {
    std::uint32_t threads;
    std::uint16_t registers;
    std::uint32_t shared;
    std::uint32_t blocks;
  };
  for (const Case& sample : {Case{256, 32, 0, 8}, Case{128, 255, 0, 2}, Case{384, 168, 200'000, 1},
                          Case{256, 128, 0, 2}, Case{256, 40, 0, 6}, Case{256, 48, 0, 5},
                          Case{1024, 64, 0, 1},
                          Case{640, 96, 0, 1}, Case{128, 80, 0, 5}}) {
    traces::LaunchShape shape;
    shape.block = {sample.threads, 1, 1};
    shape.registers_per_thread = sample.registers;
    shape.shared_memory_bytes = sample.shared;
    const StandInShape made = shape_stand_in(h100(), shape);
    EXPECT_FALSE(made.clamped);
    EXPECT_EQ(made.blocks, sample.blocks) << sample.threads << " x " << sample.registers;
  }
}

TEST(Residency, OfVariantsWithTheNumberTheOneNearestInRegistersIsTaken) {
  // NCCL: one block an SM with 64 registers a thread, too, which would leave half of the SM's.
  traces::LaunchShape shape;
  shape.block = {544, 1, 1};
  shape.registers_per_thread = 96;
  EXPECT_EQ(shape_stand_in(h100(), shape).registers, 96U);
  EXPECT_EQ(shape_stand_in(h100(), shape).blocks, 1U);
}

TEST(Residency, WhereNoVariantHasTheNumberTheNearestIsTaken) {
  traces::LaunchShape shape;
  shape.block = {64, 1, 1};
  shape.registers_per_thread = 200;  // 6,400 a warp: 10 warps, 8 by fours: 4 blocks
  const StandInShape made = shape_stand_in(h100(), shape);
  EXPECT_EQ(made.traced_blocks, 4U);
  EXPECT_EQ(made.registers, 255U);  // 8,192 a warp: 8 warps; 168 gives 12 warps, 6 blocks
  EXPECT_EQ(made.blocks, 4U);
  shape.registers_per_thread = 112;  // 3,584 a warp: 18 warps, 16 by fours: 8 blocks
  EXPECT_EQ(shape_stand_in(h100(), shape).blocks, 8U);
  EXPECT_EQ(shape_stand_in(h100(), shape).registers, 128U);
  shape.registers_per_thread = 144;  // 4,608 a warp: 14 warps, 12 by fours: 6 blocks
  EXPECT_EQ(shape_stand_in(h100(), shape).registers, 168U);
}

TEST(Residency, ShapesBeyondTheGpuAreCut) {
  traces::LaunchShape shape;
  shape.grid = {10, 70'000, 1};
  shape.block = {64, 64, 1};
  shape.shared_memory_bytes = 300'000;
  const StandInShape made = shape_stand_in(h100(), shape);
  EXPECT_TRUE(made.clamped);
  EXPECT_EQ(made.grid[1], 65'535U);
  EXPECT_EQ(made.block, (std::array<std::uint32_t, 3>{64, 16, 1}));
  EXPECT_EQ(made.shared_bytes, 232'448U);
}

}  // namespace
}  // namespace bubblesim::capture::cuda
