// A service beside a training job, with sums by hand.
#include "sim/validate/pair_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/synth/program_writer.hpp"

namespace bubblesim::validate {
namespace {

// Without launch costs of its own, so that kernels alone make time pass.
hardware::GpuSpec plain_gpu() {
  hardware::GpuSpec spec;
  spec.sm_count = 4;
  spec.time_slice = Duration{1'000'000};
  return spec;
}

// `kernels` of `each`, then the host waits.
program::Program program(const hardware::GpuSpec& gpu, int kernels, Duration length) {
  synth::ProgramWriter writer(0, gpu);
  writer.begin_iteration();
  program::KernelProfile profile;
  profile.residency = {.warps = 4, .blocks_per_sm = 2};
  synth::OpDraft draft;
  draft.profile = writer.add_profile(profile, {});
  draft.duration = length;
  for (int i = 0; i < kernels; ++i) writer.launch(draft, {}, {});
  writer.wait_for_device();
  return writer.finish();
}

TEST(PairRun, ARequestAloneTakesItsKernels) {
  const hardware::GpuSpec gpu = plain_gpu();
  const auto solo = solo_latency(gpu, program(gpu, 3, Duration{1000}));
  ASSERT_TRUE(solo);
  EXPECT_EQ(*solo, Duration{3000});
}

TEST(PairRun, LatencyIsServiceTimeWithoutTheQueue) {
  // Three requests at once, of 2 x 1,000 ns: each takes 2,000, the last ends at 6,000.
  const hardware::GpuSpec gpu = plain_gpu();
  const auto service = program(gpu, 2, Duration{1000});
  PairSetup setup;
  setup.gpu = &gpu;
  setup.inference = &service;
  setup.arrivals.assign(3, kSimStart);
  setup.length = Duration{6000};
  setup.latencies_from = 0;
  const auto figures = run_pair(setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->latencies, std::vector<Duration>(3, Duration{2000}));
  EXPECT_DOUBLE_EQ(figures->p99_ms, 0.002);
}

TEST(PairRun, RequestsThatDoNotEndWithinTheRunAreNotServed) {
  const hardware::GpuSpec gpu = plain_gpu();
  const auto service = program(gpu, 2, Duration{1000});
  PairSetup setup;
  setup.gpu = &gpu;
  setup.inference = &service;
  setup.arrivals.assign(3, kSimStart);
  setup.length = Duration{5999};
  const auto figures = run_pair(setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->served, 2u);
}

TEST(PairRun, TrainingsRateIsOfWholeIterations) {
  // Iterations of 4 x 1,000 ns: ends at 4, 8, ... us; the 100 us hold 25.
  const hardware::GpuSpec gpu = plain_gpu();
  const auto job = program(gpu, 4, Duration{1000});
  PairSetup setup;
  setup.gpu = &gpu;
  setup.training = &job;
  setup.length = Duration{101'000};
  const auto figures = run_pair(setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->iterations, 25u);
  EXPECT_NEAR(figures->iterations_per_s, 1e9 / 4000, 1e-3);
}

TEST(PairRun, ArrivalsAreOneInEachPartOfTheRun) {
  // Load 0.5 of 1 ms over 10 ms: 5 requests, one in each 2 ms.
  const auto arrivals = pair_arrivals({}, Duration{1'000'000}, Duration{10'000'000});
  ASSERT_EQ(arrivals.size(), 5u);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ((arrivals[i] - kSimStart) / Duration{2'000'000}, static_cast<std::int64_t>(i));
  }
}

TEST(PairRun, ARisingRateLeavesTheNumber) {
  // Rate 0.5 to 1.5 times the mean: the first half of the time holds (1 - r) / 2 + r / 4 = 3/8.
  const auto arrivals = pair_arrivals({.ramp = 0.5}, Duration{1000}, Duration{1'600'000});
  EXPECT_EQ(arrivals.size(), 800u);
  const auto half = std::count_if(arrivals.begin(), arrivals.end(), [](SimTime at) {
    return at < kSimStart + Duration{800'000};
  });
  EXPECT_NEAR(static_cast<double>(half), 300, 1.5);
}

/// One in 2 ms of 16 ms; spans of 4 ms hold two each, which come together within them.
TEST(PairRun, ArrivalsOfOneSpanComeTogether) {
  const auto arrivals = pair_arrivals({.burst = Duration{4'000'000}}, Duration{1'000'000},
                                      Duration{16'000'000});
  ASSERT_EQ(arrivals.size(), 8u);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i], arrivals[i / 2 * 2]);
    EXPECT_EQ((arrivals[i] - kSimStart) / Duration{4'000'000}, static_cast<std::int64_t>(i / 2));
  }
}

}  // namespace
}  // namespace bubblesim::validate
