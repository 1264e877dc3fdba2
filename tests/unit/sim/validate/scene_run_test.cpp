// Clients on one GPU, with sums by hand.
#include "sim/validate/scene_run.hpp"

#include <gtest/gtest.h>

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
program::Program program(const hardware::GpuSpec& gpu, int kernels, Duration each) {
  synth::ProgramWriter writer(0, gpu);
  writer.begin_iteration();
  program::KernelProfile profile;
  profile.residency = {.warps = 4, .blocks_per_sm = 2};
  synth::OpDraft draft;
  draft.profile = writer.add_profile(profile, {});
  draft.duration = each;
  for (int i = 0; i < kernels; ++i) writer.launch(draft, {}, {});
  writer.wait_for_device();
  return writer.finish();
}

SceneClient service_of(const program::Program& work, std::size_t requests) {
  SceneClient out;
  out.name = "service";
  out.role = policy::Role::kOnline;
  out.program = &work;
  out.loops = false;
  out.arrivals.assign(requests, kSimStart);
  return out;
}

SceneClient job_of(const program::Program& work) {
  SceneClient out;
  out.name = "job";
  out.program = &work;
  return out;
}

class SceneRun : public ::testing::Test {
 protected:
  const hardware::GpuSpec gpu = plain_gpu();
};

TEST_F(SceneRun, APassAloneTakesItsKernels) {
  const auto solo = solo_latency(gpu, program(gpu, 3, Duration{1000}));
  ASSERT_TRUE(solo);
  EXPECT_EQ(*solo, Duration{3000});
}

/// At once, of 2 x 1,000 ns each.
struct ThreeRequests {
  ThreeRequests() {
    setup.gpu = &gpu;
    setup.clients = {service_of(work, 3)};
    setup.length = Duration{6000};
  }

  hardware::GpuSpec gpu = plain_gpu();
  program::Program work = program(gpu, 2, Duration{1000});
  SceneSetup setup;
};

TEST_F(SceneRun, LatencyIsServiceTimeWithoutTheQueue) {
  // Each takes 2,000, the last ends at 6,000.
  ThreeRequests scene;
  const auto figures = run_scene(scene.setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->front().latencies, std::vector<Duration>(3, Duration{2000}));
  EXPECT_DOUBLE_EQ(figures->front().percentile_ms(99), 0.002);
  EXPECT_DOUBLE_EQ(figures->front().mean_ms(), 0.002);
}

TEST_F(SceneRun, PassesThatEndBeforeTheMeasuredSpanAreNotCounted) {
  // They end at 2,000, 4,000 and 6,000 ns; from 4,000 on there are two, 2,000 ns apart.
  ThreeRequests scene;
  scene.setup.from = Duration{4000};
  const auto figures = run_scene(scene.setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->front().passes, 2u);
  EXPECT_EQ(figures->front().latencies.size(), 2u);
  EXPECT_DOUBLE_EQ(figures->front().per_s, 1 / 2e-6);
  EXPECT_EQ(figures->front().ends.size(), 3u) << "rates over time are of all passes";
}

TEST_F(SceneRun, RequestsThatDoNotEndWithinTheRunAreNotServed) {
  const auto work = program(gpu, 2, Duration{1000});
  SceneSetup setup;
  setup.gpu = &gpu;
  setup.clients = {service_of(work, 3)};
  setup.length = Duration{5999};
  const auto figures = run_scene(setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->front().passes, 2u);
}

TEST_F(SceneRun, ALoopsRateIsOfWholePasses) {
  // Iterations of 4 x 1,000 ns: ends at 4, 8, ... us; the 101 us hold 25.
  const auto job = program(gpu, 4, Duration{1000});
  SceneSetup setup;
  setup.gpu = &gpu;
  setup.clients = {job_of(job)};
  setup.length = Duration{101'000};
  const auto figures = run_scene(setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->front().passes, 25u);
  EXPECT_NEAR(figures->front().per_s, 1e9 / 4000, 1e-3);
}

TEST_F(SceneRun, ALoopPausesAfterEachEpoch) {
  // Two passes of 1 us, then 8 us of pause: ends at 1, 2, 11, 12, 21, 22 us.
  const auto job = program(gpu, 1, Duration{1000});
  SceneSetup setup;
  setup.gpu = &gpu;
  setup.clients = {job_of(job)};
  setup.clients.front().epoch = 2;
  setup.clients.front().pause = Duration{8000};
  setup.length = Duration{22'500};
  const auto figures = run_scene(setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->front().passes, 6u);
  EXPECT_NEAR(figures->front().per_s, 5 / 21e-6, 1);
  EXPECT_EQ(figures->front().latencies, std::vector<Duration>(6, Duration{1000}))
      << "a pause is of no pass";
}

TEST_F(SceneRun, ADataLoaderBoundsALoop) {
  // Passes of 1 us, an input each 3 us, the first of an epoch ready: starts at 0, 3, 6; the pause
  // of 10 us: 17, 20, 23.
  const auto job = program(gpu, 1, Duration{1000});
  SceneSetup setup;
  setup.gpu = &gpu;
  setup.clients = {job_of(job)};
  setup.clients.front().epoch = 3;
  setup.clients.front().pause = Duration{10'000};
  setup.clients.front().feed = Duration{3000};
  setup.length = Duration{24'500};
  const auto figures = run_scene(setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->front().passes, 6u);
  EXPECT_NEAR(figures->front().per_s, 5 / 23e-6, 1);
}

TEST_F(SceneRun, ADataLoaderGetsAheadOfASlowLoop) {
  // Passes of 5 us, 1 us between them, an input each 3 us: no pass waits for its input.
  const auto job = program(gpu, 1, Duration{5000});
  SceneSetup setup;
  setup.gpu = &gpu;
  setup.clients = {job_of(job)};
  setup.clients.front().epoch = 100;
  setup.clients.front().host_gap = Duration{1000};
  setup.clients.front().feed = Duration{3000};
  setup.length = Duration{60'500};
  const auto figures = run_scene(setup);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->front().passes, 10u);
  EXPECT_EQ(figures->front().latencies, std::vector<Duration>(10, Duration{5000}));
}

}  // namespace
}  // namespace bubblesim::validate
