// Which part of a recording becomes the program. Times in us.
#include <gtest/gtest.h>

#include "tests/fault.hpp"
#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using Iterations = std::vector<std::pair<std::uint32_t, std::int64_t>>;

std::vector<std::int64_t> recorded_iterations(const program::Program& program) {
  std::vector<std::int64_t> result;
  for (const Duration length : program.recorded_iterations) result.push_back(microseconds(length));
  return result;
}

/// Begins at 0, with iterations [50, 150], [150, 290], [290, 410] of 100, 140 and 120; each
/// launches a kernel of 10 at its beginning, 5 later. Another kernel before, and one after.
TraceBuilder three_iterations() {
  TraceBuilder job;
  job.iteration(50, 150).iteration(150, 290).iteration(290, 410);
  for (const std::int64_t called : {0, 50, 150, 290, 420}) {
    job.kernel({called, called + 2, called + 5, called + 15});
  }
  return job;
}

// The launch returns at 5; the device has 40 to do, from 10 on: the host goes on 40 later, when
// what it launched a pass before has ended. The first pass has none: the wait takes its own 2.
TEST(BuilderWindow, AnUnmarkedRecordingIsOneIteration) {
  TraceBuilder job;
  job.kernel({0, 5, 10, 50});
  const program::Program program = must_build(job.trace(), Window::kIterations);
  EXPECT_EQ(program.counters.count("program_iterations_unmarked"), 1U);
  EXPECT_EQ(program.iterations, 1U);
  EXPECT_EQ(recorded_iterations(program), (std::vector<std::int64_t>{40}));
  EXPECT_EQ(microseconds(program.recorded_span), 50);
  EXPECT_EQ(run_once(program).iterations, (Iterations{{0, 0}, {1, 7}}));
}

// One more than 16 bits can number.
TEST(BuilderWindow, TooManyStreamsAreRefusedByName) {
  TraceBuilder job;
  job.kernel({0, 5, 10, 50});
  traces::RankTrace trace = job.trace();
  trace.streams.resize(65'535);
  EXPECT_TRUE(build_program(trace, plain_gpu(), {Window::kWhole}));
  trace.streams.resize(65'536);
  trace.device_ops.front().stream = StreamId{65'535};
  const auto built = error_of(build_program(trace, plain_gpu(), {Window::kWhole}));
  EXPECT_NE(built.message.find("found 65536 streams in rank 0"), std::string::npos);
}

TEST(BuilderWindow, TheWholeRecordingHasWarmUpAndTailToo) {
  const program::Program program = must_build(three_iterations().trace(), Window::kWhole);
  EXPECT_EQ(program.counters.count("program_iterations_unmarked"), 0U);
  EXPECT_EQ(recorded_iterations(program), (std::vector<std::int64_t>{100, 140, 120}));
  EXPECT_EQ(microseconds(program.recorded_span), 435);
  const RunRecorder run = run_once(program);
  EXPECT_EQ(run.spans(), (Spans{{5, 15}, {55, 65}, {155, 165}, {295, 305}, {425, 435}}));
  EXPECT_EQ(run.iterations, (Iterations{{0, 50}, {1, 150}, {2, 290}, {3, 410}}));
}

TEST(BuilderWindow, MarkersThatStartTogetherAreOneInAWholeRecordingToo) {
  const program::Program program =
      must_build(three_iterations().iteration(150, 290).trace(), Window::kWhole);
  EXPECT_EQ(recorded_iterations(program), (std::vector<std::int64_t>{100, 140, 120}));
}

// Of iterations 1 and 2, from 150 to 410: all times 150 earlier.
TEST(BuilderWindow, APassIsWhatTheIterationsUsedLaunched) {
  const program::Program program = must_build(three_iterations().trace(), Window::kIterations);
  EXPECT_EQ(program.iterations, 2U);
  const RunRecorder run = run_once(program);
  EXPECT_EQ(run.spans(), (Spans{{5, 15}, {145, 155}}));
  EXPECT_EQ(run.iterations, (Iterations{{0, 0}, {1, 140}, {2, 260}}));
  EXPECT_EQ(run.pass_ends, (std::vector<std::int64_t>{260}));
}

// From 50 to 410: all times 50 earlier, without the first and the last kernel.
TEST(BuilderWindow, AChoiceTakesWarmUpToo) {
  const auto program =
      build_program(three_iterations().trace(), plain_gpu(),
                    {Window::kIterations, {traces::IterationChoice::Kind::kAll}});
  ASSERT_TRUE(program);
  EXPECT_EQ(program->iterations, 3U);
  EXPECT_EQ(run_once(*program).spans(), (Spans{{5, 15}, {105, 115}, {245, 255}}));
}

// Of 140 and 120, the iterations used.
TEST(BuilderWindow, TheMedianIterationIsOneOfThoseUsed) {
  const program::Program program = must_build(three_iterations().trace(), Window::kMedianIteration);
  EXPECT_EQ(recorded_iterations(program), (std::vector<std::int64_t>{120}));
  const RunRecorder run = run_once(program);
  EXPECT_EQ(run.spans(), (Spans{{5, 15}}));
  EXPECT_EQ(run.iterations, (Iterations{{0, 0}, {1, 120}}));
}

// Thread 1 marked two iterations, thread 0 one; the second has no device work.
TEST(BuilderWindow, TheThreadThatMarkedMostIterationsIsTheMarkedOne) {
  TraceBuilder job(0, 2, 1);
  job.iteration(0, 100, 0).iteration(0, 50, 1).iteration(50, 90, 1).kernel({10, 12, 15, 25});
  const program::Program program = must_build(job.trace(), Window::kIterations);
  EXPECT_EQ(program.marked_thread, 1U);
  EXPECT_EQ(recorded_iterations(program), (std::vector<std::int64_t>{50}));
}

TEST(BuilderWindow, AWindowWithoutAnyDeviceOperationIsAFault) {
  TraceBuilder job;
  job.iteration(100, 200).kernel({0, 2, 5, 15});
  EXPECT_EQ(error_of(build_program(job.trace(), plain_gpu(), {Window::kIterations})).text(),
            "made by hand: found no device operation in the window, expected at least one");
  EXPECT_FALSE(build_program(TraceBuilder().trace(), plain_gpu(), {Window::kWhole}));
}

// A kernel of 31 days; the host's wait for it alone would be 620,000 steps.
TEST(BuilderWindow, AWindowLongerThanAMonthIsAFault) {
  TraceBuilder job;
  job.kernel({0, 2, 5, 31LL * 24 * 3'600'000'000});
  const auto program = build_program(job.trace(), plain_gpu(), {Window::kWhole});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().text(),
            "made by hand: found a window of 2678400s, expected at most 2592000s, which a "
            "program's steps can hold");
}

// One pass is 260 long: the host goes on at 260, 520; its kernels lie 5 after their calls.
TEST(BuilderWindow, LoopedIterationsRunIntoEachOther) {
  const program::Program program = must_build(three_iterations().trace(), Window::kIterations);
  engine::Engine engine;
  gpu::Gpu gpu(engine, plain_gpu(), gpu::SharingSetup{});
  RunRecorder recorder;
  RunSetup setup;
  setup.observer = &recorder;
  ProgramRun run(engine, gpu, program, setup);
  run.start_pass(kSimStart);
  engine.run_until(SimTime{us(530)});
  EXPECT_EQ(recorder.passes[0], (Spans{{5, 15}, {265, 275}}));
  EXPECT_EQ(recorder.passes[1], (Spans{{145, 155}, {405, 415}}));
  EXPECT_EQ(run.passes(), 2U);
  EXPECT_EQ(recorder.iterations.back(), (std::pair<std::uint32_t, std::int64_t>{0, 520}));
}

}  // namespace
}  // namespace bubblesim::workload
