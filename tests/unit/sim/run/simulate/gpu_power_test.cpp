// What GPUs draw, and the governor that keeps them below a cap; sums by hand.
#include "sim/run/gpu_power.hpp"

#include <gmock/gmock.h>

#include "sim/observe/summary.hpp"
#include "sim/run/unmet_config.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

PowerConfig locked(double clock_mhz, Duration period) { return {clock_mhz, {}, {}, period}; }

LoadedRun powered_run(const std::vector<FillerConfig>& fillers, const PowerConfig& power) {
  LoadedRun loaded = small_run(fillers);
  loaded.device = powered_gpu();
  loaded.config.power = power;
  if (power.clock_mhz) loaded.device.clock = *power.clock_mhz / 1000;
  return loaded;
}

observe::PolicyResult alone(const LoadedRun& loaded, Duration usage = {}) {
  RunScenario scenario;
  scenario.usage.interval = usage;
  return simulate(loaded, scenario);
}

// An iteration of 7 ms; A, B and C fill the GPU and draw 100 W, the collective sits on 20 of 100
// SMs and draws 8, idle 50 W. Rank 0: 3 ms of kernels, 2 of the collective: 350 + 300 + 16 mJ.
// Rank 1: 4 and 1: 350 + 400 + 8.
TEST(GpuPower, EnergyIsThatOfIdleTimeAndOfWhatRuns) {
  const observe::PolicyResult result = alone(powered_run({}, metered(10ms)));
  ASSERT_EQ(result.gpus.size(), 2U);
  EXPECT_NEAR(result.gpus[0].power.value().energy_j, 6.66, 1e-9);
  EXPECT_NEAR(result.gpus[1].power.value().energy_j, 7.58, 1e-9);
  EXPECT_NEAR(result.gpus[1].power->mean_w, 7.58 / 0.07, 1e-6);
  EXPECT_DOUBLE_EQ(result.gpus[1].power->clock_mhz, 1000);
  EXPECT_EQ(result.training.mean_iteration, 7ms);
}

// At half the clock 0.3 + 0.7 / 0.5 = 1.7 times as long: A 1.7, B 3.4, C 1.7, the collective 1, the
// host 2 ms. Rank 1's kernels draw 50 W for 6.8 of the 9.8 ms, the collective 4 + 4 / 2:
// 490 + 340 + 6 mJ.
TEST(GpuPower, ALockedClockStretchesKernelsAndLowersWhatTheyDraw) {
  LoadedRun loaded = powered_run({}, locked(500, 10ms));
  loaded.config.duration = 98ms;
  const observe::PolicyResult result = alone(loaded);
  EXPECT_EQ(result.training.mean_iteration, 9800us);
  EXPECT_NEAR(result.gpus[1].power.value().energy_j, 8.36, 1e-9);
  EXPECT_DOUBLE_EQ(result.gpus[1].power->clock_mhz, 500);
}

// 50 + 100 W for a period of 10 ms; then 100 W at half the clock keep the cap of 100 W.
TEST(GpuPower, TheGovernorFindsTheClockThatKeepsTheCapInOnePeriod) {
  const hardware::GpuSpec gpu = powered_gpu();
  GpuPower power(gpu, capped(100, 10ms), kSimStart);
  const program::Program kernel = one_kernel(100, program::KernelClass::kCompute);
  power.started(ClientId{0}, kernel, 0, kSimStart);
  power.advance(kSimStart + 10ms);
  EXPECT_DOUBLE_EQ(power.clock_mhz(), 500);
  power.advance(kSimStart + 20ms);
  EXPECT_DOUBLE_EQ(power.clock_mhz(), 500);
  EXPECT_NEAR(power.use().energy_j, 1.5 + 1.0, 1e-12);
  EXPECT_NEAR(power.use().peak_w, 150, 1e-9);
  EXPECT_NEAR(power.use().clock_mhz, 750, 1e-9);
}

// Of a kernel that DRAM bounds half follows the clock: 50 + 20 + 20 x f = 80 W at half of it. A cap
// of 100 W leaves it alone.
TEST(GpuPower, WhatDramBoundsDrawsLessAndFallsLess) {
  hardware::GpuSpec gpu = powered_gpu();
  const program::Program kernel = one_kernel(100, program::KernelClass::kMemory);
  GpuPower under_cap(gpu, capped(100, 10ms), kSimStart);
  under_cap.started(ClientId{0}, kernel, 0, kSimStart);
  under_cap.advance(kSimStart + 100ms);
  EXPECT_DOUBLE_EQ(under_cap.clock_mhz(), 1000);
  EXPECT_NEAR(under_cap.use().mean_w, 90, 1e-9);
  gpu.clock = 0.5;
  GpuPower slow(gpu, metered(10ms), kSimStart);
  slow.started(ClientId{0}, kernel, 0, kSimStart);
  slow.advance(kSimStart + 100ms);
  EXPECT_NEAR(slow.use().mean_w, 80, 1e-9);
}

// Each of two kernels on all SMs draws half: 50 + 50 + 20 W; the filler's is 20 W x 10 ms.
TEST(GpuPower, KernelsOnTheSameSmsShareThem) {
  const hardware::GpuSpec gpu = powered_gpu();
  GpuPower power(gpu, metered(10ms), kSimStart);
  const program::Program compute = one_kernel(100, program::KernelClass::kCompute);
  const program::Program memory = one_kernel(500, program::KernelClass::kMemory);
  power.started(ClientId{0}, compute, 0, kSimStart);
  power.started(ClientId{1}, memory, 0, kSimStart);
  power.advance(kSimStart + 10ms);
  EXPECT_NEAR(power.use().mean_w, 120, 1e-9);
  EXPECT_NEAR(power.use().filler_j, 0.2, 1e-12);
  EXPECT_NEAR(power.energy_of(ClientId{1}), 0.2, 1e-12);
  power.ended(ClientId{1}, memory, 0, kSimStart + 10ms);
  power.ended(ClientId{0}, compute, 0, kSimStart + 10ms);
  power.advance(kSimStart + 20ms);
  EXPECT_NEAR(power.use().energy_j, 1.2 + 0.5, 1e-12);
}

// What waits beside a kernel that fills the GPU shares its SMs: never more than 50 + 100 W.
TEST(GpuPower, AWaitingCollectiveBesideAFullGpuAddsNothing) {
  const hardware::GpuSpec gpu = powered_gpu();
  GpuPower power(gpu, metered(10ms), kSimStart);
  const program::Program compute = one_kernel(100, program::KernelClass::kCompute);
  program::Program collective = one_kernel(25, program::KernelClass::kMemory);
  collective.ops.front().kind = program::WorkKind::kCollective;
  power.started(ClientId{0}, collective, 0, kSimStart);
  power.advance(kSimStart + 10ms);
  EXPECT_NEAR(power.use().mean_w, 60, 1e-9);  // 50 + 40 / 4
  power.started(ClientId{0}, compute, 0, kSimStart + 10ms);
  power.advance(kSimStart + 20ms);
  EXPECT_NEAR(power.use().energy_j, 0.6 + 0.01 * (50 + (100 + 10) / 1.25), 1e-9);
}

TEST(GpuPower, ACapIsKeptAndCostsIterations) {
  const observe::PolicyResult free = alone(powered_run({}, metered(1ms)));
  const observe::PolicyResult under_cap = alone(powered_run({}, capped(100, 1ms)));
  EXPECT_LT(under_cap.gpus[1].power.value().mean_w, 100);
  EXPECT_LT(under_cap.gpus[1].power->mean_w, free.gpus[1].power.value().mean_w);
  EXPECT_LT(under_cap.gpus[1].power->clock_mhz, 1000);
  EXPECT_GT(under_cap.training.mean_iteration, free.training.mean_iteration);
}

// 150 W for a period; then 50 + 100 x 0.1 = 60 W at the lowest clock, 100 MHz, for two: a cap of
// 60 W is kept, one of 55 is not.
TEST(GpuPower, PeriodsAboveTheCapAtTheLowestClockAreCounted) {
  const hardware::GpuSpec gpu = powered_gpu();
  const program::Program kernel = one_kernel(100, program::KernelClass::kCompute);
  const auto use_under = [&](double cap_w) {
    GpuPower power(gpu, capped(cap_w, 10ms), kSimStart);
    power.started(ClientId{0}, kernel, 0, kSimStart);
    power.advance(kSimStart + 30ms);
    return power.use();
  };
  EXPECT_EQ(use_under(60).periods_over_cap, 0U);
  EXPECT_EQ(use_under(55).periods_over_cap, 2U);
  EXPECT_NEAR(use_under(55).over_cap_w, 60, 1e-9);
}

TEST(GpuPower, ACapThatNoClockKeepsIsALossAndSaidInWatts) {
  const observe::PolicyResult kept = alone(powered_run({}, capped(100, 1ms)));
  EXPECT_EQ(kept.counters.count(kPowerCapNotKept.name), 0U);
  EXPECT_THAT(kept.notices, testing::IsEmpty());
  const observe::PolicyResult missed = alone(powered_run({}, capped(55, 1ms)));
  EXPECT_GT(missed.counters.count(kPowerCapNotKept.name), 0U);
  EXPECT_THAT(missed.notices,
              testing::ElementsAre(testing::AllOf(
                  testing::HasSubstr("the cap of 55 W was not kept: GPU "),
                  testing::HasSubstr(" drew up to 60.0 W at its lowest clock, 100 MHz"))));
}

TEST(GpuPower, ACapWhoseGovernorNeverLooksIsSaidToDoNothing) {
  const observe::PolicyResult result = alone(powered_run({}, capped(100, 5s)));
  EXPECT_DOUBLE_EQ(result.gpus[1].power.value().clock_mhz, 1000);
  EXPECT_EQ(result.counters.count(kKeysWithoutEffect.name), 1U);
  EXPECT_THAT(result.notices,
              testing::ElementsAre(testing::HasSubstr(
                  "first looks after its \"period\" of 5s, the run ended at 70ms")));
}

/// One rank whose iteration is a kernel of 10 ms on all SMs, no part of which DRAM bounds.
LoadedRun compute_bound_run(const PowerConfig& power) {
  LoadedRun loaded = powered_run({}, power);
  loaded.device.contention.compute_kernel_memory_boundness = 0;
  workload::JobProgram job;
  job.ranks = {computing_rank(0)};
  loaded.training = job;
  return loaded;
}

// The kernel draws 100 W above idle at the full clock and is as slow as the clock: at half of it an
// iteration takes 20 ms in place of 10, at 50 + 50 W in place of 50 + 100. So a cap of 100 W costs
// what half the clock does, once the governor has found it.
TEST(GpuPower, WhatALimitCostsTheJobAloneIsItsShareOfTheUnlimitedRate) {
  for (const PowerConfig& limit : {locked(500, 1ms), capped(100, 1ms)}) {
    LoadedRun loaded = compute_bound_run(limit);
    loaded.config.duration = 1100ms;
    loaded.config.warmup = 100ms;
    loaded.config.policies = {choice("exclusive")};
    const auto report = report_of(loaded);
    const auto& cost = report.baseline.power_limit;
    ASSERT_TRUE(cost.has_value());
    EXPECT_NEAR(cost->unlimited_iterations_per_s, 100, 1e-6);
    EXPECT_NEAR(cost->kept, 0.5, 1e-6);
    EXPECT_NEAR(cost->unlimited_w, 150, 1e-6);
    EXPECT_NEAR(cost->limited_w, 100, 1e-6);
    EXPECT_NEAR(report.policies[0].training.normalised_to_alone.value_or(0), 1, 1e-12);
  }
}

TEST(GpuPower, WithoutALimitNothingIsSaidOfItsCost) {
  LoadedRun loaded = powered_run({}, metered(10ms));
  loaded.config.policies = {choice("exclusive")};
  const auto report = report_of(loaded);
  EXPECT_FALSE(report.baseline.power_limit.has_value());
}

// Powers are whole and times are whole: how often somebody looks changes nothing.
TEST(GpuPower, UsageOverTimeAddsUpAndChangesNothing) {
  const LoadedRun loaded = powered_run({}, capped(90, 3ms));
  const observe::PolicyResult quiet = alone(loaded);
  const observe::PolicyResult watched = alone(loaded, 1300us);
  ASSERT_EQ(watched.usage.size(), 2U);
  for (std::size_t gpu = 0; gpu < 2; ++gpu) {
    EXPECT_EQ(watched.gpus[gpu].power.value().energy_j, quiet.gpus[gpu].power.value().energy_j);
    double joules = 0;
    for (const observe::UsageInterval& interval : watched.usage[gpu].intervals) {
      joules += interval.power.value().watts * to_seconds(interval.to - interval.from);
    }
    EXPECT_NEAR(joules, quiet.gpus[gpu].power->energy_j, 1e-9);
  }
  EXPECT_EQ(watched.training.mean_iteration, quiet.training.mean_iteration);
}

TEST(GpuPower, WithoutTheKeyNothingIsMetered) {
  const observe::PolicyResult result = alone(small_run({offline("batch")}), 10ms);
  EXPECT_FALSE(result.gpus.front().power.has_value());
  EXPECT_FALSE(result.usage.front().intervals.front().power.has_value());
}

TEST(GpuPower, FillersRaisePowerAndTheirRequestsHaveAPrice) {
  LoadedRun loaded = powered_run({offline("batch")}, metered(10ms));
  loaded.config.policies = {choice("exclusive"), choice("mps")};
  auto report = report_of(loaded);
  const auto exclusive = observe::power_of(report.policies[0]);
  EXPECT_GT(observe::power_of(report.policies[1]).value().mean_w, exclusive.value().mean_w);
  EXPECT_FALSE(observe::request_energy(report.policies[0].fillers[0]).has_value());
  EXPECT_GT(observe::request_energy(report.policies[1].fillers[0]).value_or(0), 0);
}

}  // namespace
}  // namespace bubblesim::run
