// The fake GPU against the simulator: the same jobs take the same time, to the nanosecond.
#include <gmock/gmock.h>

#include <array>

#include "sim/measure/job_plans.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/simulation.hpp"
#include "sim/workload/lone_job.hpp"
#include "tests/fault.hpp"
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
  capture::JobPlan plan = plan_of_program(job.ranks.front(), spec);
  plan.loop = capture::LoopMode{kPasses * plan.program.iterations};
  const Played played = play(spec, {{plan}}).front();
  EXPECT_EQ(played.fault, "");
  EXPECT_EQ(played.in_flight, 0U);
  EXPECT_EQ(played.record.iterations, expected);
}

void expect_the_same(const ProgramMaker& maker) {
  workload::JobProgram job;
  job.ranks.push_back(maker.program());
  expect_the_same(job, workload::plain_gpu());
}

TEST(FakeGpu, AKernelAndAWaitTakeWhatTheyTakeInTheSimulator) {
  expect_the_same(ProgramMaker().iteration(0).kernel(1, 10).launch_lag(3).wait_stream(0, 2).end(4));
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
  for (const std::uint32_t rank : {0U, 3U}) {
    const run::LoadedRun single = sample_rank(rank, 1);
    expect_the_same(*single.training, single.device);
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
  run::LoadedFiller filler = *loaded.fillers.front();
  filler.program.ops.front().duration += 123ns;
  filler.program.threads.front().steps.front().think = program::short_span(37'003ns);
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
  const auto expected = must(run::Simulation(loaded, scenario).run());

  const auto plans = must(job_plans(loaded, {.spec = &spec}));
  const PlayedJob training{plans[0].plan, 70ms};
  const PlayedJob filler{plans[1].plan, 70ms};
  const auto played = play(loaded.device, {training, filler}, sharing, {{100, priority}, {100, 0}});
  EXPECT_EQ(played[0].record.iterations, ends_of(expected.training.ranks.front().times));
  const auto passes = expected.fillers.front().instances.front().passes;
  EXPECT_GT(passes, 10U);
  EXPECT_EQ(played[1].record.passes.size(), passes);
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

// What a fake GPU tells hosts, and what happens when something goes wrong. One iteration: a kernel
// of 10 us from 1 us on, seen 2 us after its end.

using testing::ElementsAre, testing::HasSubstr;

// begin() is 1 ms before the common start.
constexpr Duration kStart = 1ms;

PlayedJob job(std::uint32_t client, const ProgramMaker& maker, std::uint64_t passes = 1) {
  PlayedJob made{plan_of_program(maker.program(), workload::plain_gpu())};
  made.plan.loop = capture::LoopMode{passes};
  made.plan.client = ClientId{client};
  made.plan.name = "job " + std::to_string(client);
  return made;
}

PlayedJob job(std::uint32_t client, std::uint64_t passes = 3) {
  return job(client, ProgramMaker().iteration(0).kernel(1, 10).wait_stream(0, 2).end(), passes);
}

/// Start and end of an operation, and when the process heard of the end.
using Times = std::array<Duration, 3>;

std::vector<Times> heard(const Played& played) {
  std::vector<Times> times;
  for (const auto& op : played.record.operations) times.push_back({op.start, op.end, op.noticed});
  return times;
}

TEST(FakeGpu, RecordsTheTrueTimes) {
  PlayedJob single = job(0, 2);
  single.plan.record_operations = true;
  const Played played = play(workload::plain_gpu(), {single}).front();
  EXPECT_THAT(played.record.iterations, ElementsAre(13us, 26us));
  EXPECT_THAT(heard(played), ElementsAre(Times{1us, 11us, 11us}, Times{14us, 24us, 24us}));
  EXPECT_EQ(played.record.counters.count("fake_device_notices_lost"), 0U);
}

TEST(FakeGpu, TellsOfEverythingBeforeItIsClosedHoweverLate) {
  PlayedJob single = job(0, 2);
  single.plan.record_operations = true;
  FakeGpuFaults faults;
  faults.late_notices = 5ms;
  const Played played = play(workload::plain_gpu(), {single}, {}, {}, faults).front();
  EXPECT_THAT(played.record.iterations, ElementsAre(13us, 26us));
  EXPECT_THAT(heard(played), ElementsAre(Times{1us, 11us, 5011us}, Times{14us, 24us, 5024us}));
}

// From 30 us on the device stands still for 1 ms: the third iteration, from 26 us to 39 us, has
// begun its kernel at 27 us.
TEST(FakeGpu, ThatStandsStillGoesOnWhereItWas) {
  FakeGpuFaults faults;
  faults.device_stall = FakeDeviceStall{kStart + 30us, 1ms};
  const Played played = play(workload::plain_gpu(), {job(0)}, {}, {}, faults).front();
  EXPECT_THAT(played.record.iterations, ElementsAre(13us, 26us, 1039us));
  EXPECT_EQ(played.fault, "");
}

// At 25 us nothing runs; what is launched at 27 us begins when the device goes on.
TEST(FakeGpu, TakesLaunchesOnceItGoesOn) {
  FakeGpuFaults faults;
  faults.device_stall = FakeDeviceStall{kStart + 25us, 1ms};
  const Played played = play(workload::plain_gpu(), {job(0)}, {}, {}, faults).front();
  EXPECT_THAT(played.record.iterations, ElementsAre(13us, 26us, 1025us + 10us + 2us));
}

TEST(FakeGpu, ThatNoLongerAnswersOneJobServesTheOthers) {
  const PlayedJob stuck = job(1, ProgramMaker().iteration(0).kernel(1, 10).end());
  FakeGpuFaults faults;
  faults.job_stall = FakeJobStall{ClientId{1}, kStart + 5us};
  const auto played = play(workload::plain_gpu(), {job(0), stuck}, {}, {}, faults);
  EXPECT_THAT(played[0].record.iterations, ElementsAre(13us, 26us, 39us));
  EXPECT_EQ(played[0].fault, "");
  EXPECT_THAT(played[1].fault, HasSubstr("does not answer: 1 operations of job 1"));
}

// Its kernel ends; what would have waited for more is let go.
TEST(FakeGpu, LetsTheWorkOfAJobThatIsGoneEnd) {
  PlayedJob gone = job(1, ProgramMaker().iteration(0).kernel(1, 10).kernel(0, 30).end());
  gone.dies = true;
  const auto played = play(workload::plain_gpu(), {job(0), gone});
  EXPECT_THAT(played[0].record.iterations, ElementsAre(13us, 26us, 39us));
  EXPECT_EQ(played[1].in_flight, 2U);
}

// The second operation waits for one that is never launched: nobody waits for it after the end.
TEST(FakeGpu, ClosesWithWorkThatNeverRuns) {
  PlayedJob half = job(0, ProgramMaker(2).iteration(0).kernel(1, 10, 0).end());
  half.plan.program.ops.push_back(half.plan.program.ops.front());  // launched by no step
  half.plan.program.ops.front().edge_count = 1;
  half.plan.program.edges = {{1, {}}};
  const Played played = play(workload::plain_gpu(), {half}).front();
  EXPECT_EQ(played.fault, "");
  EXPECT_EQ(played.in_flight, 1U);
}

TEST(FakeGpu, RefusesMoreMemoryThanThereIs) {
  hardware::GpuSpec spec = workload::plain_gpu();
  spec.memory = Bytes{1000};
  PlayedJob first = job(0);
  first.plan.memory = Bytes{600};
  PlayedJob second = job(1);
  second.plan.memory = Bytes{500};
  const auto played = play(spec, {first, second});
  EXPECT_EQ(played[0].fault, "");
  EXPECT_THAT(played[1].fault, HasSubstr("job 1 needs 500B of device memory, free are 400B"));
  EXPECT_EQ(play(spec, {first, second}, {.unified_memory = true})[1].fault, "");
}

TEST(FakeGpu, HasAPlaceForEachClientOnce) {
  auto clock = must(capture::make_turn_clock());
  const auto part = clock->join(capture::Turn::kControl);
  const auto gpu = make_fake_gpu(workload::plain_gpu());
  capture::RigSetup setup;
  setup.jobs.push_back(job(0).plan);
  setup.shares.resize(1);
  const auto address = must(gpu->begin(*clock, setup));
  const std::string name = address.substr(5);
  const auto device = must(capture::open_fake_device(name, *clock, ClientId{0}));
  EXPECT_GT(device->resident_blocks(0), 0U);
  const auto again = error_of(capture::open_fake_device(name, *clock, ClientId{0}));
  EXPECT_THAT(again.text(), HasSubstr("open already"));
  EXPECT_THAT(capture::open_fake_device(name, *clock, ClientId{3}).error().text(),
              HasSubstr("no job of client 3"));
  EXPECT_THAT(capture::open_fake_device("nobody", *clock, ClientId{0}).error().text(),
              HasSubstr("no fake GPU \"nobody\""));
}

}  // namespace
}  // namespace bubblesim::measure
