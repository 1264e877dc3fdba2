// What a loop of a stand-in is made of.
#include "capture/replay/cuda/stand_in_mix.hpp"

#include <gtest/gtest.h>

#include "tests/unit/capture/replay_cuda/facts.hpp"

namespace bubblesim::capture::cuda {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace bubblesim::capture::cuda
