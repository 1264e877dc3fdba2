// A budget of power over the GPUs of a node: who leaves watts, and who takes them; sums by hand.
#include <gmock/gmock.h>

#include <memory>

#include "sim/run/gpu_power.hpp"
#include "sim/run/unmet_config.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

constexpr Duration kPeriod = 10ms;

/// A GPU on which no part of a kernel is bound by DRAM: it follows the clock.
hardware::GpuSpec clocked_gpu() {
  hardware::GpuSpec gpu = powered_gpu();
  gpu.contention.compute_kernel_memory_boundness = 0;
  return gpu;
}

PowerConfig budget(double node_cap_w, Duration period = kPeriod) {
  return {{}, {}, node_cap_w, period};
}

/// GPUs of one node under a budget, each with a kernel on all SMs or none.
struct Node {
  Node(double cap_w, std::size_t gpus) : power(gpu, budget(cap_w), kSimStart) {
    for (std::size_t i = 0; i < gpus; ++i) {
      each.push_back(std::make_unique<GpuPower>(gpu, budget(cap_w), kSimStart));
      power.add(*each.back());
    }
  }
  void start(std::size_t i, SimTime at) { each[i]->started(ClientId{0}, kernel, 0, at); }
  void end(std::size_t i, SimTime at) { each[i]->ended(ClientId{0}, kernel, 0, at); }

  hardware::GpuSpec gpu = clocked_gpu();
  program::Program kernel = one_kernel(100, program::KernelClass::kCompute);
  NodePower power;
  std::vector<std::unique_ptr<GpuPower>> each;
};

// Of 250 W two idle GPUs take 100: 150 are left for one that computes with 100, and 75 for each of
// two, at 750 MHz. Half of the budget as the cap of a GPU would hold the first to 750 MHz, too.
TEST(NodePower, AGpuThatComputesHasWhatAnIdleOneLeaves) {
  Node node(250, 2);
  node.start(0, kSimStart);
  node.each[0]->advance(kSimStart + 3 * kPeriod);
  EXPECT_DOUBLE_EQ(node.each[0]->clock_mhz(), 1000);
  node.start(1, kSimStart + 3 * kPeriod);
  node.each[0]->advance(kSimStart + 4 * kPeriod);
  EXPECT_DOUBLE_EQ(node.each[0]->clock_mhz(), 750);
  EXPECT_DOUBLE_EQ(node.each[1]->clock_mhz(), 750);
  node.end(0, kSimStart + 5 * kPeriod);
  node.each[1]->advance(kSimStart + 6 * kPeriod);
  EXPECT_DOUBLE_EQ(node.each[1]->clock_mhz(), 1000);
}

// Both at full clock for a period, 300 W; then 250 W. GPU 1 is looked at last of all.
TEST(NodePower, TheMeanOfEachPeriodKeepsTheBudgetWhoeverIsLookedAt) {
  Node node(250, 2);
  node.start(0, kSimStart);
  node.start(1, kSimStart);
  for (int i = 1; i <= 7; ++i) node.each[0]->advance(kSimStart + i * 7ms);
  node.each[1]->advance(kSimStart + 49ms);
  for (const auto& gpu : node.each) {
    EXPECT_NEAR(gpu->use().energy_j, 0.010 * 150 + 0.039 * 125, 1e-12);
  }
}

// At the lowest clock, 100 MHz, two kernels draw 100 + 20 W.
TEST(NodePower, PeriodsAboveTheBudgetAtTheLowestClockAreCounted) {
  const auto over = [](double cap_w) {
    Node node(cap_w, 2);
    node.start(0, kSimStart);
    node.start(1, kSimStart);
    node.each[0]->advance(kSimStart + 4 * kPeriod);
    return std::pair(node.power.periods_over_cap(), node.power.over_cap_w());
  };
  EXPECT_EQ(over(120).first, 0U);
  EXPECT_EQ(over(110).first, 3U);  // all but the first, at the full clock
  EXPECT_NEAR(over(110).second, 120, 1e-9);
}

/// An iteration is 10 ms of the host: its GPU is left to fillers.
program::Program waiting_rank(std::uint32_t number) {
  program::Program rank =
      workload::ProgramMaker().rank(number).iteration(0).end(10'000).program();
  rank.recorded_iterations = {10ms};
  return rank;
}

/// Two ranks on a node of two GPUs.
LoadedRun two_gpus(const program::Program& first, const program::Program& second,
                   const PowerConfig& power, const std::vector<FillerConfig>& fillers = {}) {
  LoadedRun loaded = small_run(fillers);
  loaded.device = clocked_gpu();
  loaded.config.power = power;
  loaded.config.duration = 1100ms;
  loaded.config.warmup = 100ms;
  workload::JobProgram job;
  job.ranks = {first, second};
  loaded.training = job;
  hardware::ClusterSpec cluster;
  cluster.gpus_per_node = 2;
  loaded.topology.emplace(network::Topology(cluster));
  return loaded;
}

observe::PolicyResult under_mps(LoadedRun loaded) {
  loaded.config.policies = {choice("mps")};
  return report_of(loaded).policies[0];
}

// Where all GPUs do the same, a budget is as many caps: 50 + 50 W each, at half the clock.
TEST(NodePower, ABudgetOverEqualGpusIsACapOfEach) {
  const observe::PolicyResult each =
      under_mps(two_gpus(computing_rank(0), computing_rank(1), capped(100, 1ms)));
  const observe::PolicyResult together =
      under_mps(two_gpus(computing_rank(0), computing_rank(1), budget(200, 1ms)));
  EXPECT_EQ(together.training.mean_iteration, 20ms);
  EXPECT_EQ(together.training.mean_iteration, each.training.mean_iteration);
  for (std::size_t gpu = 0; gpu < 2; ++gpu) {
    EXPECT_EQ(together.gpus[gpu].power.value().energy_j, each.gpus[gpu].power.value().energy_j);
  }
}

// Rank 0 computes, rank 1 waits: 50 + 100 + 50 W, the whole budget. A filler on half of GPU 1's SMs
// draws 50 W more; 100 + 150 f = 200 holds at two thirds of the clock, and an iteration takes
// 15 ms. It is less where the filler's host turns round, 0.1 ms after each pass of 1.5. With 150 W
// for each GPU the filler costs training nothing.
TEST(NodePower, AFillerOnOneGpuTakesWattsFromTrainingOnAnother) {
  FillerConfig filler = offline("batch");
  filler.gpus = {{1}};
  const auto iteration = [&](const PowerConfig& power, const std::vector<FillerConfig>& fillers) {
    return under_mps(two_gpus(computing_rank(0), waiting_rank(1), power, fillers))
        .training.ranks.front()
        .times.back();
  };
  EXPECT_EQ(iteration(budget(200, 1ms), {}), 10ms);
  const Duration filled = iteration(budget(200, 1ms), {filler});
  EXPECT_GT(filled, 14ms);
  EXPECT_LT(filled, 15100us);
  EXPECT_EQ(iteration(capped(150, 1ms), {filler}), 10ms);
}

TEST(NodePower, ABudgetThatNoClockKeepsIsALossAndSaidInWatts) {
  const observe::PolicyResult missed =
      under_mps(two_gpus(computing_rank(0), computing_rank(1), budget(110, 1ms)));
  EXPECT_GT(missed.counters.count(kPowerCapNotKept.name), 0U);
  EXPECT_THAT(missed.notices,
              testing::ElementsAre(testing::HasSubstr(
                  "/power/node_cap_w: the budget of 110 W was not kept: the 2 GPUs of node 0 drew "
                  "up to 120.0 W at their lowest clock, 100 MHz")));
}

// The governor looks every 10 ms: it finds an idle GPU before each kernel, and lowers the clock
// after it. A kernel at the full clock draws 150 W for half of the time: 100 W of each GPU on
// average.
TEST(NodePower, ALimitThatTheMeanExceedsIsSaidInWatts) {
  const auto notices = [](const PowerConfig& power) {
    const observe::PolicyResult result =
        under_mps(two_gpus(computing_rank(0, 10'000), computing_rank(1, 10'000), power));
    EXPECT_EQ(result.counters.count(kPowerCapNotKept.name), 0U);
    EXPECT_EQ(result.counters.count(kMeanOverCap.name), power.cap_w ? 2U : 1U);
    return result.notices;
  };
  EXPECT_THAT(notices(capped(80, 10ms)),
              testing::ElementsAre(testing::HasSubstr(
                  "the cap of 80 W was not kept on average: GPU 0 drew 100.0 W; the "
                  "clock of each \"period\" of 10ms follows")));
  EXPECT_THAT(notices(budget(160, 10ms)),
              testing::ElementsAre(testing::HasSubstr(
                  "/power/node_cap_w: the budget of 160 W was not kept on average: the 2 GPUs of "
                  "node 0 drew 200.0 W; ")));
}

}  // namespace
}  // namespace bubblesim::run
