// The job runner of a rig on the fake GPU, without gate: a rank of the sample job takes what it
// takes in the simulator, and a service serves what it serves there.
#include <gtest/gtest.h>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/replay/fake/fake_device.hpp"
#include "capture/replay/job_runner.hpp"
#include "sim/measure/fake_gpu.hpp"
#include "sim/measure/job_plans.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/simulation.hpp"
#include "tests/unit/sim/measure/plan_player.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::measure {
namespace {

using namespace std::chrono_literals;

/// One job on a GPU of its own.
capture::JobRecord run_alone(const hardware::GpuSpec& spec, const capture::JobPlan& plan) {
  auto made = capture::make_turn_clock();
  EXPECT_TRUE(made);
  capture::HostClock& clock = **made;
  const auto part = clock.join(capture::Turn::kControl);
  const auto gpu = make_fake_gpu(spec);
  capture::RigSetup setup;
  setup.jobs.push_back({plan, 100});
  const auto address = gpu->begin(clock, setup, {}, {});
  EXPECT_TRUE(address);
  capture::Crew crew(clock);
  crew.start(capture::Turn::kDevice, [&] { gpu->run(); });
  capture::ReplayEnd end;
  {
    auto device = capture::open_fake_device(address->substr(5), clock, plan.client);
    EXPECT_TRUE(device);
    capture::JobRunner runner(plan, {&clock, device->get(), nullptr, {}, {}});
    const auto ready = runner.prepare({});
    EXPECT_TRUE(ready);
    end = runner.run(clock.now() + 1ms);
  }
  gpu->stop();
  crew.wait();
  EXPECT_FALSE(end.fault) << end.fault->text();
  return end.record;
}

TEST(JobRunnerOnTheFakeGpu, ARankTakesWhatItTakesInTheSimulator) {
  run::RunConfig config;
  config.file = "run.json";
  config.iterations = 6;
  config.training.traces = {std::string(BUBBLESIM_SOURCE_DIR) + "/traces/samples/training"};
  const auto loaded = run::load_run(config, std::string(BUBBLESIM_SOURCE_DIR) + "/configs/devices");
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  const auto single = run::lone_rank(*loaded, 1);
  ASSERT_TRUE(single) << single.error().text();
  const auto expected = run::Simulation(*single, {}).run();
  ASSERT_TRUE(expected) << expected.error().text();
  const auto job = training_plan(*single, {});
  ASSERT_TRUE(job) << job.error().text();
  const capture::JobRecord record = run_alone(single->device, job->plan);
  EXPECT_EQ(record.iterations, ends_of(expected->training.ranks.front().times));
}

// Requests that arrive when they do in the simulation wait and are served as long as there.
TEST(JobRunnerOnTheFakeGpu, AServiceServesWhatItServesInTheSimulator) {
  run::LoadedRun loaded = *run::lone_rank(run::small_run({run::online("service", 1500)}), 0);
  loaded.config.fillers[0].batching.max_batch = 3;
  loaded.config.fillers[0].batching.max_wait = 400us;
  loaded.config.fillers[0].batching.batch_cost = 0.25;
  run::RunScenario scenario;
  scenario.training = false;
  scenario.fillers = {0};
  const auto simulated = run::Simulation(loaded, scenario).run();
  ASSERT_TRUE(simulated) << simulated.error().text();
  const observe::FillerResult& expected = simulated->fillers.front();
  const auto job = filler_plan(loaded, 0, ClientId{1}, {});
  ASSERT_TRUE(job) << job.error().text();
  const capture::JobRecord record = run_alone(loaded.device, job->plan);
  std::vector<Duration> latencies;
  for (const capture::RequestRecord& request : record.requests) {
    if (request.end <= 70ms) latencies.push_back(request.end - request.arrival);
  }
  EXPECT_GT(latencies.size(), 30U);
  EXPECT_EQ(latencies, expected.latency.samples());
}

}  // namespace
}  // namespace bubblesim::measure
