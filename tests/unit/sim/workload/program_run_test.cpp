// Running a program: launch queue, gate, passes, perturbations. Times in us.
#include "sim/workload/program_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

using Iterations = std::vector<std::pair<std::uint32_t, std::int64_t>>;

RunSetup one_pass(LaunchGate* gate = nullptr) {
  RunSetup setup;
  setup.repeat = Repeat::kOnePass;
  setup.gate = gate;
  return setup;
}

// The host launches 1140 kernels of 10, one each 1: number n at n - 1, when floor((n - 1) / 10)
// have ended. Number 1138 is the first to find 1024 pending: 1137 - 113, at 1137. It goes through
// when number 114 ends, at 1140, and returns at 1141; the next two wait for 1150 and 1160.
TEST(ProgramRunQueue, ALaunchWaitsWhile1024ArePendingOnItsStream) {
  ProgramMaker job;
  for (int i = 0; i < 1140; ++i) job.kernel(0, 10).cost(1);
  job.end();
  struct Gate final : LaunchGate {
    bool may_launch(const LaunchCall& call, SimTime now) override {
      calls.push_back(microseconds(now));
      EXPECT_EQ(call.first + 1, calls.size());
      return true;
    }
    std::vector<std::int64_t> calls;
  } gate;
  OneRun one(job.program(), one_pass(&gate));
  one.start();
  ASSERT_EQ(gate.calls.size(), 1140U);  // each launch asks once
  EXPECT_EQ(gate.calls[1136], 1136);
  EXPECT_EQ(gate.calls[1137], 1137);
  EXPECT_EQ(gate.calls[1138], 1141);
  EXPECT_EQ(gate.calls[1139], 1151);
  EXPECT_EQ(one.recorder.iterations.front().second, 1161);
  EXPECT_EQ(one.recorder.passes[1139], (Spans{{11390, 11400}}));
}

// Kernel 1138 of thread 0 finds the queue full at 1137 and is to last twice as long. Thread 1
// launches one on the other stream at 1138, which keeps its 10; kernel 1138 starts when 1137
// others have ended.
TEST(ProgramRunQueue, TheFormOfALaunchThatWaitsForRoomIsNotAnothers) {
  ProgramMaker job(2);
  for (int i = 0; i < 1138; ++i) job.kernel(0, 10).cost(1);
  job.end().thread().kernel(1138, 10, 1);
  struct Gate final : LaunchGate {
    bool may_launch(const LaunchCall& call, SimTime) override {
      if (call.first == 1137) call.run->reshape({.most_blocks = 0, .slowdown = 2});
      return true;
    }
  } gate;
  OneRun one(job.program(), one_pass(&gate));
  one.start();
  EXPECT_EQ(one.recorder.passes[1138], (Spans{{1138, 1148}}));
  EXPECT_EQ(one.recorder.passes[1137], (Spans{{11370, 11390}}));
}

/// Holds the launches whose number (of all, from 1) is listed.
class HoldingGate final : public LaunchGate {
 public:
  explicit HoldingGate(std::vector<std::uint64_t> held) : held_(std::move(held)) {}
  bool may_launch(const LaunchCall& call, SimTime) override {
    const bool holds = std::find(held_.begin(), held_.end(), ++calls) != held_.end();
    if (holds) holding.push_back(call);
    return !holds;
  }
  std::uint64_t calls = 0;
  std::vector<LaunchCall> holding;

 private:
  std::vector<std::uint64_t> held_;
};

// Launches at 10, 20 and 30; the second is held until 100 and costs its 2 from then: the third
// comes at 110. The first kernel is not touched.
TEST(ProgramRunGate, AHeldLaunchHoldsItsThreadUntilResumed) {
  HoldingGate gate({2});
  OneRun one(ProgramMaker().kernel(10, 5).cost(2).kernel(8, 5).cost(2).kernel(8, 5).cost(2).end()
                 .program(), one_pass(&gate));
  gpu::Script script(one.engine);
  script.at(100'000, [&] { one.run->resume(gate.holding.at(0).thread, at(100)); });
  one.start();
  EXPECT_EQ(gate.calls, 3U);  // a resumed launch asks no second time
  EXPECT_EQ(gate.holding[0].first, 1U);
  EXPECT_EQ(gate.holding[0].count, 1U);
  EXPECT_EQ(one.recorder.spans(), (Spans{{10, 15}, {100, 105}, {110, 115}}));
  EXPECT_EQ(one.recorder.pass_ends, (std::vector<std::int64_t>{115}));
}

// Thread 0 is held at 10; thread 1 goes on.
TEST(ProgramRunGate, OtherThreadsGoOnBesideAHeldOne) {
  HoldingGate gate({1});
  OneRun one(ProgramMaker(2).kernel(10, 5).end().thread().kernel(20, 5, 1).kernel(20, 5, 1)
                 .program(), one_pass(&gate));
  one.start(at(50));
  EXPECT_EQ(one.run->outstanding(), 0U);
  EXPECT_TRUE(one.recorder.pass_ends.empty());
  EXPECT_EQ(one.recorder.passes[1], (Spans{{20, 25}}));
  EXPECT_EQ(one.recorder.passes[2], (Spans{{40, 45}}));
}

// A pass: launch at 10, kernel until 40, the wait returns 5 later, the end 5 after that: 50.
TEST(ProgramRunPasses, ALoopBeginsTheNextPassWhenTheHostHasEndedOne) {
  OneRun one(ProgramMaker().iteration(0).kernel(10, 30).wait_stream(0, 5).end(5).program());
  one.start(at(160));
  EXPECT_EQ(one.recorder.passes[0], (Spans{{10, 40}, {60, 90}, {110, 140}}));
  EXPECT_EQ(one.recorder.iterations,
            (Iterations{{0, 0}, {1, 50}, {0, 50}, {1, 100}, {0, 100}, {1, 150}, {0, 150}}));
  EXPECT_EQ(one.run->passes(), 3U);
  EXPECT_TRUE(one.recorder.pass_ends.empty());
}

// The host launches each 10, the kernel takes 30: passes overlap, the stream keeps their order.
TEST(ProgramRunPasses, TheHostMayRunPassesAheadOfTheDevice) {
  OneRun one(ProgramMaker().kernel(10, 30).end().program());
  one.start(at(105));
  EXPECT_EQ(one.recorder.passes[0], (Spans{{10, 40}, {40, 70}, {70, 100}}));
  EXPECT_EQ(one.run->passes(), 10U);
  EXPECT_EQ(one.run->outstanding(), 7U);
}

// The same, two kernels a pass on two streams: launches 1 to 10 by 50, when the first two kernels
// of 30 have ended. Each says which launch it was, not which came last.
TEST(ProgramRunPasses, AnOperationKnowsItsLaunchHoweverFarTheHostIsAhead) {
  OneRun one(ProgramMaker(2).kernel(5, 30).kernel(5, 30, 1).end().program());
  one.start(at(101));
  // Stream 0: 5 to 35, 65, 95. Stream 1: 10 to 40, 70, 100.
  EXPECT_EQ(one.recorder.launches, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
}

// An edge binds within its pass: in each pass, the second kernel follows the first by 2.
TEST(ProgramRunPasses, EdgesBindWithinTheirPass) {
  OneRun one(ProgramMaker(2).kernel(10, 20).kernel(0, 5, 1).after(0, 2).end(90).program());
  one.start(at(299));
  EXPECT_EQ(one.recorder.passes[0], (Spans{{10, 30}, {110, 130}, {210, 230}}));
  EXPECT_EQ(one.recorder.passes[1], (Spans{{32, 37}, {132, 137}, {232, 237}}));
}

// Passes at 0, 100 and 300 with factors 1, 2 and 0.5: kernels of 30, 60 and 15. A collective of
// 10 keeps its length.
TEST(ProgramRunPasses, EachPassIsStartedByItsOwnerWithAFactor) {
  OneRun one(ProgramMaker().kernel(10, 30).collective(0, 10, program::kNoIndex).wait_stream(0, 0)
                 .end().program(), one_pass());
  gpu::Script script(one.engine);
  script.at(100'000, [&] { one.run->start_pass(at(100), 2.0); });
  script.at(300'000, [&] { one.run->start_pass(at(300), 0.5); });
  one.start();
  EXPECT_EQ(one.recorder.passes[0], (Spans{{10, 40}, {110, 170}, {310, 325}}));
  EXPECT_EQ(one.recorder.passes[1], (Spans{{40, 50}, {170, 180}, {325, 335}}));
  EXPECT_EQ(one.recorder.pass_ends, (std::vector<std::int64_t>{50, 180, 335}));
  EXPECT_EQ(one.run->passes(), 3U);
}

TEST(ProgramRunPasses, APassEndsOnceWhenHostAndDeviceHaveFinished) {
  for (const auto& [program, end] : {
           // The host is done at 10; the kernel ends at 40.
           std::pair{ProgramMaker().kernel(10, 30).end().program(), 40},
           // The device is done at 15, the last call at 10 + 20.
           {ProgramMaker().kernel(10, 5).cost(20).program(), 30},
           // Thread 1's last step waits for the device; the completion that lets it return ends it.
           {ProgramMaker().end().thread().kernel(10, 30).wait_stream(0, 0).program(), 40}}) {
    OneRun one(program, one_pass());
    one.start();
    EXPECT_EQ(one.recorder.pass_ends, (std::vector<std::int64_t>{end}));
    EXPECT_EQ(one.run->passes(), 1U);
  }
}

// A graph of two kernels on two streams: one call, both start with it.
TEST(ProgramRunLaunches, AGraphLaunchesAllItsOperationsAtOnce) {
  HoldingGate gate({});
  OneRun one(ProgramMaker(2).kernel(10, 30).and_kernel(20, 1).wait_device(0, 4).kernel(6, 5).end()
                 .program(), one_pass(&gate));
  one.start();
  EXPECT_EQ(gate.calls, 2U);
  EXPECT_EQ(one.recorder.spans(), (Spans{{10, 40}, {10, 30}, {50, 55}}));
}

TEST(ProgramRunLaunches, WaitsReturnWhenWhatTheyAreForHasEnded) {
  EXPECT_EQ(replayed(ProgramMaker().copy_and_wait(10, 30, 4).kernel(6, 5).end().program()),
            (Spans{{10, 40}, {50, 55}}));
  // For one operation: before others have ended.
  EXPECT_EQ(replayed(ProgramMaker(3).kernel(10, 30).kernel(0, 100, 1).wait_op(0, 0, 4)
                .kernel(6, 5, 2).end().program()), (Spans{{10, 40}, {10, 110}, {50, 55}}));
}

// Kernels take 1.5 times as long, collectives do not.
TEST(ProgramRunPerturbed, AStragglersKernelsAreSlower) {
  EXPECT_EQ(run_once(ProgramMaker().kernel(10, 30).collective(0, 10, program::kNoIndex)
                .wait_stream(0, 0).end().program(),
            {.slowdown = 1.5}).spans(), (Spans{{10, 55}, {55, 65}}));
}

/// Lengths of one kernel, in ns, over 200 iterations of one pass.
std::vector<std::int64_t> jittered(double cv, std::uint64_t seed) {
  ProgramMaker job;
  job.iterations(200);
  for (std::uint32_t i = 0; i < 200; ++i) job.iteration(i).kernel(1, 100).wait_stream(0, 0);
  job.end();
  struct Lengths final : RunObserver {
    void on_op_finished(const OpRecord& record) override {
      all.push_back(to_ns(record.end - record.start));
    }
    std::vector<std::int64_t> all;
  } lengths;
  engine::Engine engine;
  gpu::Gpu gpu(engine, plain_gpu(), gpu::SharingSetup{});
  RunSetup setup;
  setup.repeat = Repeat::kOnePass;
  setup.perturbation = {.jitter_cv = cv, .seed = seed};
  setup.observer = &lengths;
  const program::Program program = job.program();
  ProgramRun run(engine, gpu, program, setup);
  run.start_pass(kSimStart);
  engine.run_until();
  return lengths.all;
}

TEST(ProgramRunPerturbed, JitterIsTheSameForTheSameSeed) {
  EXPECT_EQ(jittered(0.1, 7), jittered(0.1, 7));
  EXPECT_NE(jittered(0.1, 7), jittered(0.1, 8));
  EXPECT_EQ(jittered(0, 7), std::vector<std::int64_t>(200, 100'000));
}

// Mean 100 us and deviation 10 us; over 200 draws the mean deviates by 10 / sqrt(200) = 0.7 us,
// the deviation by about 10 / sqrt(400) = 0.5 us. Four of each are allowed.
TEST(ProgramRunPerturbed, JitterHasMeanOneAndTheGivenDeviation) {
  const std::vector<std::int64_t> lengths = jittered(0.1, 7);
  double sum = 0;
  double squares = 0;
  for (const std::int64_t ns : lengths) {
    sum += static_cast<double>(ns) / 1000;
    squares += static_cast<double>(ns) / 1000 * static_cast<double>(ns) / 1000;
  }
  const double mean = sum / 200;
  EXPECT_NEAR(mean, 100, 4 * 0.7);
  EXPECT_NEAR(std::sqrt(squares / 200 - mean * mean), 10, 4 * 0.5);
}

}  // namespace
}  // namespace bubblesim::workload
