// Which part of a recording becomes the program. Times in us.
#include <gtest/gtest.h>

#include "sim/program/rules.hpp"
#include "sim/workload/build_counters.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

using Iterations = std::vector<std::pair<std::uint32_t, std::int64_t>>;
using traces::Explanation, traces::HeldBy, traces::HostCallKind, traces::HostWait, traces::WaitFor;

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
      must(build_program(three_iterations().trace(), plain_gpu(),
                         {Window::kIterations, {traces::IterationChoice::Kind::kAll}}));
  EXPECT_EQ(program.iterations, 3U);
  EXPECT_EQ(run_once(program).spans(), (Spans{{5, 15}, {105, 115}, {245, 255}}));
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
  const auto program = error_of(build_program(job.trace(), plain_gpu(), {Window::kWhole}));
  EXPECT_EQ(program.text(),
            "made by hand: found a window of 2678400s, expected at most 2592000s, which a "
            "program's steps can hold");
}

// One pass is 260 long: the host goes on at 260, 520; its kernels lie 5 after their calls.
TEST(BuilderWindow, LoopedIterationsRunIntoEachOther) {
  OneRun one(must_build(three_iterations().trace(), Window::kIterations));
  one.start(at(530));
  EXPECT_EQ(one.recorder.passes[0], (Spans{{5, 15}, {265, 275}}));
  EXPECT_EQ(one.recorder.passes[1], (Spans{{145, 155}, {405, 415}}));
  EXPECT_EQ(one.run->passes(), 2U);
  EXPECT_EQ(one.recorder.iterations.back(), (std::pair<std::uint32_t, std::int64_t>{0, 520}));
}

// Launch calls that a full launch queue held. Times in us.
constexpr std::int64_t kKernel = 100;

// Kernels of 100 one after another from 5 on; calls of 1 every 2, so that kernel i ends at
// 105 + 100 i and at 2 i some 0.98 i are pending.
TraceBuilder deep_queue(std::uint32_t kernels) {
  TraceBuilder job(0, 1, 2);
  for (std::int64_t i = 0; i < kernels; ++i) {
    job.kernel({2 * i, 2 * i + 1, 5 + kKernel * i, 5 + kKernel * (i + 1)});
  }
  return job;
}

// After 920 launches 902 are pending: at 1840 kernels 0 to 17 have ended, the last at 1805. The
// next call lasts until 1910: 5 after kernel 18 ended, of which 1 is what a launch costs. Then a
// launch on the other stream, 5 later.
TraceBuilder held(std::uint32_t before = 920) {
  TraceBuilder job = deep_queue(before);
  const std::int64_t queued = 5 + kKernel * before;
  job.kernel({1840, 1910, queued, queued + kKernel}).kernel({1915, 1916, 1920, 1930, 1});
  return job;
}

const program::Step& step_of(const program::Program& program, std::size_t launch) {
  std::size_t launches = 0;
  for (const program::Step& step : program.threads[0].steps) {
    if (step.kind == program::StepKind::kLaunch && launches++ == launch) return step;
  }
  ADD_FAILURE() << "no launch " << launch;
  return program.threads[0].steps[0];
}

TEST(LaunchQueue, a_call_that_a_full_queue_held_waits_for_what_made_room) {
  const program::Program program = must_build(held().trace());
  EXPECT_EQ(program.counters.count("program_queue_waits_inferred"), 1U);
  const program::Step& wait = (&step_of(program, 920))[-1];
  EXPECT_EQ(wait.kind, program::StepKind::kWaitOp);
  EXPECT_EQ(wait.target, 18U);
  EXPECT_EQ(microseconds(program.details[wait.detail].return_lag), 4);
  EXPECT_EQ(microseconds(step_of(program, 920).cost), 1);
}

TEST(LaunchQueue, a_held_call_replays_as_recorded_and_moves_with_the_device) {
  program::Program program = must_build(held().trace());
  EXPECT_EQ(replayed(program).back(), (Span{1920, 1930}));
  program.ops[0].duration -= us(50);  // kernel 18 ends at 1855
  EXPECT_EQ(replayed(program).back(), (Span{1870, 1880}));
  program.ops[0].duration += us(80);  // and at 1935
  EXPECT_EQ(replayed(program).back(), (Span{1950, 1960}));
}

// 800 pending leave room: whatever the call did for 70, it did not wait for the queue.
TEST(LaunchQueue, a_long_call_with_room_in_the_queue_is_host_time) {
  program::Program program = must_build(held(800).trace());
  EXPECT_EQ(program.counters.count("program_queue_waits_inferred"), 0U);
  EXPECT_EQ(microseconds(step_of(program, 800).cost), 70);
  program.ops[0].duration -= us(50);
  EXPECT_EQ(replayed(program).back(), (Span{1920, 1930}));
}

// As recorded by 46 graphs of 20 kernels: 45 are pending.
TEST(LaunchQueue, a_graph_is_one_launch_however_many_operations_it_has) {
  traces::RankTrace trace = held().trace();
  for (std::uint32_t i = 0; i < 920; ++i) {
    trace.device_ops[i].launch = trace.device_ops[i / 20 * 20].launch;
  }
  const program::Program program = must_build(trace);
  EXPECT_EQ(program.counters.count("program_queue_waits_inferred"), 0U);
  EXPECT_EQ(microseconds(step_of(program, 46).cost), 70);
}

// The recording says that the queue was full from 1842 to 1907: of the call's 70, 5 are its own,
// and it returns 5 after kernel 18.
TEST(LaunchQueue, a_recorded_stall_waits_for_what_made_room_too) {
  TraceBuilder job = held();
  program::Program program = must_build(job.queue_full(1842, 1907).trace());
  EXPECT_EQ(program.counters.count("program_queue_waits_inferred"), 0U);
  EXPECT_EQ(microseconds(step_of(program, 920).cost), 5);
  program.ops[0].duration -= us(50);
  EXPECT_EQ(replayed(program).back(), (Span{1870, 1880}));
}

// Iteration 1 begins at 1840: the kernels that fill the queue were launched before it. The run's
// own queue holds the launch there, so that its cost is the usual 1.
TEST(LaunchQueue, what_made_room_before_the_window_leaves_the_usual_cost) {
  TraceBuilder job = held();
  job.iteration(1840, 1950);
  const program::Program program = must_build(job.trace(), Window::kIterations);
  EXPECT_EQ(microseconds(step_of(program, 0).cost), 1);
}

// Launches of 95 at 10 + 100 i are held for 90 by four kernels of before the window, which are not
// part of it: 90, 90, 90 and 88 of them are waits that the pass does not hold, and the last call's
// other 2 are the queue's. What is left of each is its own 5.
TEST(LaunchQueue, a_launch_held_by_work_from_before_the_window_keeps_its_own_cost) {
  TraceBuilder job;
  for (std::int64_t i = 0; i < 4; ++i) job.orphan({.start = 100 * i, .end = 100 * (i + 1)});
  for (std::int64_t i = 0; i < 4; ++i) {
    job.kernel({100 * i + 10, 100 * i + 105, 400 + 100 * i, 500 + 100 * i});
    job.queue_full(100 * i + 12, 100 * i + 102);
  }
  const program::Program program = must_build(job.trace(), Window::kIterations);
  for (std::size_t launch = 0; launch < 4; ++launch) {
    EXPECT_EQ(microseconds(step_of(program, launch).cost), 5) << launch;
  }
}

// Host times above 4.29 s, the longest that one step holds, are replayed whole.
constexpr std::int64_t kFiveSeconds = 5'000'000;

TEST(BuilderPauses, HostTimesAreTakenInFull) {
  constexpr std::int64_t kBack = kFiveSeconds + 100;
  expect_replays({
    // The call returns 5 s after the kernel that it waited for; the other thread waits for it.
    {"AWaitMayReturnLongAfterWhatItWaitedFor",
     TraceBuilder(0, 2, 2).kernel({0, 5, 10, 100}).call(HostCallKind::kDeviceSync, {6, kBack})
         .kernel({kBack + 5, kBack + 7, kBack + 15, kBack + 25})
         .kernel({kBack + 50, kBack + 52, kBack + 60, kBack + 70, 1, 1}),
     {{10, 100}, {kBack + 15, kBack + 25}, {kBack + 60, kBack + 70}},
     {{0, 20, {{10, 120}, {kBack + 35, kBack + 45}, {kBack + 80, kBack + 90}}}},
     {{"program_spans_clamped", 0}}},
    // The first launch loads its module for 5 s.
    {"ACallMayTakeLong",
     TraceBuilder(0, 1, 2).kernel({0, kFiveSeconds, 10, 20})
         .kernel({kFiveSeconds + 5, kFiveSeconds + 7, kFiveSeconds + 15, kFiveSeconds + 25, 1}),
     {{10, 20}, {kFiveSeconds + 15, kFiveSeconds + 25}}, {}, {{"program_spans_clamped", 0}}}});
}

// Thread 1 goes on 10 s after thread 0's copy has returned at 105: 2 pauses, then the launch.
TEST(BuilderPauses, AThreadMayThinkLongAfterAHandOver) {
  const std::int64_t later = 2 * kFiveSeconds + 105;
  TraceBuilder job(0, 2, 2);
  job.copy({0, 105, 10, 100}).kernel({later, later + 2, later + 10, later + 20, 1, 1});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_spans_clamped"), 0U);
  const std::vector<program::Step>& steps = program.threads[1].steps;
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_NE(program::hand_over(program, steps[0]), nullptr);
  EXPECT_EQ(program::hand_over(program, steps[1]), nullptr);
  EXPECT_EQ(program::hand_over(program, steps[2]), nullptr);
  EXPECT_EQ(replayed(program), (Spans{{10, 100}, {later + 10, later + 20}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 20), (Spans{{10, 120}, {later + 30, later + 40}}));
}

// What held each start and each wait, and the time that nothing explains. Times in us.
std::uint64_t starts(const Explanation& found, HeldBy by) {
  return found.starts[static_cast<std::size_t>(by)];
}

std::uint64_t waits(const Explanation& found, HostWait kind, WaitFor reason) {
  return found.waits[static_cast<std::size_t>(kind)][static_cast<std::size_t>(reason)];
}

/// A kernel on stream 0, launched at 0, [8, 108]; then a wait for a stream from 10 to `end`.
TraceBuilder waiting_for(std::uint32_t stream, std::int64_t end) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 2, 8, 108}).stream_sync(10, end, stream);
  return job;
}

TEST(BuilderExplanation, a_wait_for_named_work_is_explained) {
  const JobProgram job = must_build_job({waiting_for(0, 110)});
  const Explanation& found = job.explained.at(0);
  EXPECT_EQ(starts(found, HeldBy::kLaunch), 1U);
  EXPECT_EQ(waits(found, HostWait::kStream, WaitFor::kNamed), 1U);
  EXPECT_EQ(found.unexplained, us(0));
  EXPECT_EQ(found.window, us(110));
}

// A thread that sleeps returns up to 100 late; beyond, it waited for something else: from 108 on.
TEST(BuilderExplanation, what_a_wait_takes_long_after_its_work_is_unexplained) {
  EXPECT_EQ(must_build_job({waiting_for(0, 208)}).explained.at(0).unexplained, us(0));
  EXPECT_EQ(must_build_job({waiting_for(0, 209)}).explained.at(0).unexplained, us(101));
}

// 400 of 410.
TEST(BuilderExplanation, a_wait_for_a_stream_without_work_is_unexplained_and_makes_a_job_doubtful) {
  const JobProgram job = must_build_job({waiting_for(1, 410)});
  const Explanation& found = job.explained.at(0);
  EXPECT_EQ(waits(found, HostWait::kStream, WaitFor::kUnknown), 1U);
  EXPECT_EQ(found.unexplained, us(400));
  EXPECT_EQ(job.counters.count(kTimeUnexplained.name), 1U);
  EXPECT_EQ(job.counters.count(kDoubtful.name), 1U);
}

// A [8, 1008] on stream 0, its successor [1010, 1020]; on stream 1 C, which waits for A by an edge,
// and D, launched at 1100, which starts 30 after its call returned: 22 longer than launches take.
TEST(BuilderExplanation, starts_are_held_by_what_ended_last) {
  TraceBuilder trace(0, 1, 2);
  trace.kernel({0, 2, 8, 1008}).kernel({4, 6, 1010, 1020}).kernel({8, 10, 1012, 1015, 1})
      .kernel({1100, 1102, 1132, 1200, 1}).edge(0, 2);
  const JobProgram job = must_build_job({trace});
  const Explanation& found = job.explained.at(0);
  EXPECT_EQ(starts(found, HeldBy::kLaunch), 1U);
  EXPECT_EQ(starts(found, HeldBy::kStream), 1U);
  EXPECT_EQ(starts(found, HeldBy::kEdge), 1U);
  EXPECT_EQ(starts(found, HeldBy::kUnknown), 1U);
  EXPECT_EQ(found.late_starts, us(1132 - 1108));
  EXPECT_EQ(found.window, us(1200));
  EXPECT_EQ(job.counters.count(kTimeUnexplained.name), 1U);  // 24 of 1200
  EXPECT_EQ(job.counters.count(kDoubtful.name), 0U);
}

}  // namespace
}  // namespace bubblesim::workload
