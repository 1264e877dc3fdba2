// The fake GPU against the simulator: the same jobs take the same time, to the nanosecond.
#include <gtest/gtest.h>

#include "sim/measure/job_plans.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/simulation.hpp"
#include "sim/workload/lone_job.hpp"
#include "tests/unit/sim/measure/plan_player.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::measure {
namespace {

using namespace std::chrono_literals;
using workload::ProgramMaker;

constexpr std::uint64_t kPasses = 3;

class Marks final : public workload::RunObserver {
 public:
  void on_iteration(workload::ProgramRun&, std::uint32_t index, SimTime now) override {
    if (index > 0) ends.push_back(now - kSimStart);
  }
  std::vector<Duration> ends;
};

/// Ends of iterations of the rank by itself in the simulator.
std::vector<Duration> simulated(const workload::JobProgram& job, const hardware::GpuSpec& spec) {
  Marks marks;
  workload::RunObserver* observer = &marks;
  const workload::LoneSetup setup{workload::Repeat::kLoop, kPasses, {}};
  workload::LoneJob lone(job, spec, setup, {&observer, 1});
  lone.run();
  EXPECT_TRUE(lone.finished());
  return marks.ends;
}

void expect_the_same(const workload::JobProgram& job, const hardware::GpuSpec& spec) {
  const std::vector<Duration> expected = simulated(job, spec);
  const Played played =
      play(spec, {{plan_of_program(job.ranks.front(), spec), kPasses}}).front();
  EXPECT_EQ(played.fault, "");
  EXPECT_EQ(played.in_flight, 0U);
  EXPECT_EQ(played.iterations, expected);
}

void expect_the_same(const ProgramMaker& maker) {
  workload::JobProgram job;
  job.ranks.push_back(maker.program());
  expect_the_same(job, workload::plain_gpu());
}

TEST(FakeGpu, AKernelAndAWaitTakeWhatTheyTakeInTheSimulator) {
  expect_the_same(
      ProgramMaker().iteration(0).kernel(1, 10).launch_lag(3).wait_stream(0, 2).end(4));
}

TEST(FakeGpu, KernelsOfAStreamKeepTheirGaps) {
  expect_the_same(ProgramMaker()
                      .iteration(0)
                      .kernel(1, 10)
                      .cost(2)
                      .kernel(0, 5)
                      .gap(1)
                      .cost(2)
                      .kernel(0, 7)
                      .gap(3)
                      .wait_device(0, 2)
                      .end());
}

TEST(FakeGpu, StreamsWaitForEachOther) {
  expect_the_same(ProgramMaker(3)
                      .iteration(0)
                      .kernel(0, 10, 0)
                      .kernel(0, 20, 1)
                      .kernel(0, 5, 2)
                      .after(0, 1)
                      .after(1, 2)
                      .kernel(0, 4, 0)
                      .after(2, 0)
                      .wait_op(1, 2, 1)
                      .wait_device(1, 2)
                      .end());
}

TEST(FakeGpu, GraphsCopiesAndCollectivesDoToo) {
  expect_the_same(ProgramMaker(2)
                      .iteration(0)
                      .kernel(0, 10)
                      .and_kernel(20, 1)
                      .cost(3)
                      .collective(0, 8, program::kNoIndex, 1)
                      .copy_and_wait(0, 9, 2)
                      .cost(1)
                      .wait_device(0, 1)
                      .end(2));
}

// The host is 1100 launches ahead of what the queue holds.
TEST(FakeGpu, AFullLaunchQueueHoldsTheHostBack) {
  ProgramMaker maker;
  maker.iteration(0);
  for (int i = 0; i < 2200; ++i) maker.kernel(0, 10).cost(1);
  expect_the_same(maker.end());
}

TEST(FakeGpu, ThreadsThatDoNotWaitForTheDeviceRunAhead) {
  expect_the_same(ProgramMaker(2).iteration(0).kernel(5, 10).end().thread().kernel(3, 4, 1));
}

TEST(FakeGpu, EachRankOfTheSampleJobTakesWhatItTakesInTheSimulator) {
  run::RunConfig config;
  config.file = "run.json";
  config.iterations = 1;
  config.training.traces = {std::string(BUBBLESIM_SOURCE_DIR) + "/traces/samples/training"};
  const auto loaded = run::load_run(config, std::string(BUBBLESIM_SOURCE_DIR) + "/configs/devices");
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  for (const std::uint32_t rank : {0U, 3U}) {
    const auto single = run::lone_rank(*loaded, rank);
    ASSERT_TRUE(single) << single.error().text();
    expect_the_same(*single->training, single->device);
  }
}

/// Decides nothing but how the GPU is shared.
class Fixed final : public policy::Policy {
 public:
  Fixed(policy::Sharing sharing, std::int32_t priority) : sharing_(sharing), priority_(priority) {}
  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    return sharing_;
  }
  policy::ClientSharing share(const policy::ClientInfo& client) override {
    return {100, client.id.value == 0 ? priority_ : 0};
  }

 private:
  policy::Sharing sharing_;
  std::int32_t priority_;
};

/// A lone rank of 7 ms iterations, for 70 ms, and a filler of 1 ms kernels. What the two do at one
/// instant may come in another order on a clock of turns, so they never do anything at one instant.
run::LoadedRun shared_run() {
  run::LoadedRun loaded = *run::lone_rank(run::small_run({run::offline("filler")}), 0);
  program::Program filler = *loaded.fillers.front();
  filler.ops.front().duration += 123ns;
  filler.threads.front().steps.front().think = program::short_span(37'003ns);
  loaded.fillers.front() = filler;
  return loaded;
}

void expect_the_same_shared(const policy::Sharing& sharing, std::int32_t priority) {
  const run::LoadedRun loaded = shared_run();
  policy::PolicySpec spec;
  spec.name = "fixed";
  spec.make = [&](const policy::ParameterSet&) {
    return std::make_unique<Fixed>(sharing, priority);
  };
  const policy::ParameterSet parameters;
  run::RunScenario scenario;
  scenario.policy = &spec;
  scenario.parameters = &parameters;
  scenario.fillers = {0};
  const auto expected = run::Simulation(loaded, scenario).run();
  ASSERT_TRUE(expected) << expected.error().text();

  const auto plans = job_plans(loaded, {.spec = &spec});
  ASSERT_TRUE(plans) << plans.error().text();
  const PlayedJob training{(*plans)[0].plan, 1000, false, 70ms};
  const PlayedJob filler{(*plans)[1].plan, 1000, true, 70ms};
  const auto played =
      play(loaded.device, {training, filler}, sharing, {{100, priority}, {100, 0}});
  EXPECT_EQ(played[0].iterations, ends_of(expected->training.ranks.front().times));
  const auto passes = expected->fillers.front().instances.front().passes;
  EXPECT_GT(passes, 10U);
  EXPECT_EQ(played[1].passes.size(), passes);
}

TEST(FakeGpu, JobsThatShareSpatiallyTakeWhatTheyTakeInTheSimulator) {
  expect_the_same_shared({program::SharingMode::kSpatial}, 0);
  expect_the_same_shared({program::SharingMode::kSpatial}, 1);
  expect_the_same_shared({program::SharingMode::kMps}, 0);
}

TEST(FakeGpu, JobsThatTakeTurnsDoToo) {
  expect_the_same_shared({program::SharingMode::kTimeSliced, 500us, 20us}, 0);
  expect_the_same_shared({program::SharingMode::kTimeSliced, 2ms, 100us}, 0);
}

}  // namespace
}  // namespace bubblesim::measure
