// Launch calls that a full launch queue held. Times in us.
#include <gtest/gtest.h>

#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

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

// The call returns at 200 with the last part of the copy on its way, which ends at 216.
TEST(BuilderWaits, a_copy_of_pageable_memory_blocks_though_it_ends_after_its_call) {
  TraceBuilder job(0, 1, 2);
  job.copy({0, 200, 100, 216}).kernel({220, 222, 230, 240, 1});
  program::Program program = must_build(job.trace());
  EXPECT_EQ(program.threads[0].steps[1].kind, program::StepKind::kLaunchAndWait);
  EXPECT_EQ(replayed(program), (Spans{{100, 216}, {230, 240}}));
  program.ops[0].duration -= us(100);
  EXPECT_EQ(replayed(program), (Spans{{100, 116}, {130, 140}}));
}

// 20 within the call are too short for staging: an asynchronous copy that began at once.
TEST(BuilderWaits, a_short_copy_that_outlasts_its_call_is_asynchronous) {
  TraceBuilder job(0, 1, 2);
  job.copy({0, 30, 10, 40}).kernel({50, 52, 60, 70, 1});
  EXPECT_EQ(must_build(job.trace()).threads[0].steps[1].kind, program::StepKind::kLaunch);
}

}  // namespace
}  // namespace bubblesim::workload
