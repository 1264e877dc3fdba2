// How the time before an operation's start is split among what it waited for. Times in us.
#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

// Lags 8, 8 and 5: the median is 8; the third cannot have needed more than its 5.
TEST(BuilderLags, TheUsualLaunchLagIsTheMedianOverOperationsOfIdleStreams) {
  TraceBuilder job;
  job.kernel({0, 3, 8, 20}).kernel({100, 103, 108, 120}).kernel({200, 203, 205, 220});
  const program::Program program = must_build(job.trace());
  ASSERT_EQ(program.ops.size(), 3U);
  EXPECT_EQ(microseconds(program.ops[0].launch_lag), 8);
  EXPECT_EQ(microseconds(program.ops[1].launch_lag), 8);
  EXPECT_EQ(microseconds(program.ops[1].gap), 0);
  EXPECT_EQ(microseconds(program.ops[2].launch_lag), 5);
  EXPECT_EQ(replayed(program), (Spans{{8, 20}, {108, 120}, {205, 220}}));
}

// Gaps 2, 3, 2: the usual one is 2. The third operation's gap is 3, so 1 remains, on its gap.
TEST(BuilderLags, TheUsualGapIsTheMedianOverOperationsThatQueued) {
  TraceBuilder job;
  job.kernel({0, 1, 10, 50}).kernel({1, 2, 52, 60}).kernel({2, 3, 63, 70}).kernel({3, 4, 72, 80});
  const program::Program program = must_build(job.trace());
  ASSERT_EQ(program.ops.size(), 4U);
  EXPECT_EQ(microseconds(program.ops[1].launch_lag), 10);
  EXPECT_EQ(microseconds(program.ops[1].gap), 2);
  EXPECT_EQ(microseconds(program.ops[2].gap), 3);
  EXPECT_EQ(replayed(program), (Spans{{10, 50}, {52, 60}, {63, 70}, {72, 80}}));
}

// Usual lag 8; the third operation started 50 after its call: 42 are unexplained.
TEST(BuilderLags, ADelayThatNothingExplainsStaysOnTheLaunchAndIsCounted) {
  TraceBuilder job;
  job.kernel({0, 3, 8, 20}).kernel({100, 103, 108, 120}).kernel({200, 203, 250, 260});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(microseconds(program.ops[2].launch_lag), 50);
  EXPECT_EQ(program.counters.count("program_delays_unexplained"), 1U);
  EXPECT_EQ(replayed(program), (Spans{{8, 20}, {108, 120}, {250, 260}}));
}

// Usual gap 5; the third operation followed after 30: 25 are unexplained, and lie on the gap,
// since the stream (60) was satisfied after the launch (2 + 10).
TEST(BuilderLags, ADelayThatNothingExplainsStaysOnTheDependencySatisfiedLast) {
  TraceBuilder job;
  job.kernel({0, 1, 10, 50})
      .kernel({1, 2, 55, 60})
      .kernel({2, 3, 90, 100})
      .kernel({3, 4, 105, 110});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(microseconds(program.ops[2].launch_lag), 10);
  EXPECT_EQ(microseconds(program.ops[2].gap), 30);
  EXPECT_EQ(program.counters.count("program_delays_unexplained"), 1U);
  EXPECT_EQ(replayed(program), (Spans{{10, 50}, {55, 60}, {90, 100}, {105, 110}}));
}

// One of 21 operations says 2095, its call came at 2100: it starts with the call, and lasts its 15.
TEST(BuilderLags, AnOperationRecordedBeforeItsLaunchStartsWithIt) {
  TraceBuilder job;
  for (std::int64_t at = 0; at < 2000; at += 100) job.kernel({at, at + 2, at + 8, at + 20});
  job.kernel({2100, 2102, 2095, 2110});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_backward_times"), 1U);
  EXPECT_EQ(replayed(program).back(), (Span{2100, 2115}));
}

// The only operation says 5, its call came at 10: the host's clock is 5 ahead. Begun at -5, the
// recording has its operation from 10 to 25.
TEST(BuilderLags, OperationsRecordedBeforeTheirLaunchesTellTheClocksOffset) {
  TraceBuilder job;
  job.call(traces::HostCallKind::kOther, {0, 1}).kernel({10, 12, 5, 20});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_backward_times"), 0U);
  EXPECT_EQ(program.counters.count("program_host_clocks_moved_ns"), 5'000U);
  EXPECT_EQ(replayed(program), (Spans{{10, 25}}));
}

// [40, 60] begins within [10, 50]: 10 remain after it. [42, 45] lies wholly before 60: none does.
TEST(BuilderLags, OverlapsWithinAStreamAreTrimmed) {
  TraceBuilder job;
  job.kernel({0, 1, 10, 50}).kernel({1, 2, 40, 60}).kernel({2, 3, 42, 45});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_overlaps_trimmed"), 2U);
  EXPECT_EQ(replayed(program), (Spans{{10, 50}, {50, 60}, {60, 60}}));
}

// 10 s between two calls is more than a step can hold (4.29 s): pauses fill the rest.
TEST(BuilderLags, ALongPauseOfTheHostBecomesSeveralSteps) {
  constexpr std::int64_t kTenSeconds = 10'000'000;
  TraceBuilder job;
  job.kernel({0, 3, 5, 20})
      .kernel({kTenSeconds, kTenSeconds + 3, kTenSeconds + 5, kTenSeconds + 20});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_spans_clamped"), 0U);
  EXPECT_EQ(replayed(program), (Spans{{5, 20}, {kTenSeconds + 5, kTenSeconds + 20}}));
}

// 5 s from launch to start is more than 2^32 - 1 ns.
TEST(BuilderLags, ALagOver4SecondsIsClampedAndCounted) {
  TraceBuilder job;
  job.kernel({0, 3, 5'000'000, 5'000'020});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.ops[0].launch_lag.duration(), Duration{4'294'967'295});
  EXPECT_EQ(program.counters.count("program_spans_clamped"), 1U);
}

TEST(BuilderLags, ShortSpansClampToTheirRange) {
  EXPECT_EQ(program::short_span(Duration{-1}).nanoseconds, 0U);
  EXPECT_EQ(program::short_span(Duration{7}).nanoseconds, 7U);
  EXPECT_EQ(program::short_span(Duration{4'294'967'295}).nanoseconds, 4'294'967'295U);
  EXPECT_EQ(program::short_span(Duration{4'294'967'296}).nanoseconds, 4'294'967'295U);
}

// The usual lag is 10. A runs on stream 0 from 70 to 170; B, of a graph launched at 66, starts on
// stream 1 at `start`, and nothing recorded says why so late. C follows it.
program::Program graph_on_another_stream(std::int64_t start) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 1, 10, 20}).kernel({30, 31, 40, 50}).kernel({60, 61, 70, 170})
      .kernel({66, 67, start, start + 10, 1})
      .orphan({.start = start + 10, .end = start + 20, .stream = 1});
  traces::RankTrace trace = job.trace();
  trace.device_ops.back().launch = trace.device_ops[3].launch;
  trace.host_calls.back().kind = traces::HostCallKind::kLaunchGraph;
  return must_build(trace);
}

// B started 2 after A ended: it waited for A, and with A shorter by 50 both come 50 sooner.
TEST(BuilderLags, what_a_graph_starts_as_another_stream_ends_waited_for_it) {
  program::Program program = graph_on_another_stream(172);
  EXPECT_EQ(program.counters.count("program_edges_inferred"), 1U);
  EXPECT_EQ(program.counters.count("program_delays_unexplained"), 0U);
  EXPECT_EQ(replayed(program).back(), (Span{182, 192}));
  program.ops[2].duration -= us(50);
  EXPECT_EQ(replayed(program).back(), (Span{132, 142}));
}

// Iterations of 500: A runs from 8 to 208 on stream 0, B from `start` to 300 on stream 1, both
// launched by 7. B's lag is no usual one: the launch lag is A's 8.
TraceBuilder follows_another_stream(std::initializer_list<std::int64_t> starts) {
  TraceBuilder job(0, 1, 2);
  std::int64_t at = 0;
  for (const std::int64_t start : starts) {
    job.iteration(at, at + 500).kernel({at, at + 2, at + 8, at + 208})
        .kernel({at + 5, at + 7, at + start, at + 300, 1});
    at += 500;
  }
  return job;
}

// B starts 2 after A in each of three iterations: with A shorter by 50, so do all of B.
TEST(BuilderLags, what_starts_as_another_stream_ends_in_each_iteration_waited_for_it) {
  program::Program program = must_build(follows_another_stream({210, 210, 210}).trace());
  EXPECT_EQ(program.counters.count("program_edges_inferred"), 3U);
  EXPECT_EQ(program.counters.count("program_delays_unexplained"), 0U);
  EXPECT_EQ(microseconds(program.ops[1].launch_lag), 8);
  EXPECT_EQ(replayed(program).back(), (Span{1210, 1300}));
  program.ops[4].duration -= us(50);
  EXPECT_EQ(replayed(program).back(), (Span{1160, 1250}));
}

// In one of three iterations B starts 2 after A; in the others what it waited for is not known. The
// delays after the usual launch lag (13 to 210, twice 13 to 150: 197 + 137 + 137) are over 1 % of
// 1500.
TEST(BuilderLags, what_follows_another_stream_once_is_unexplained_and_a_loss) {
  const program::Program program = must_build(follows_another_stream({210, 150, 150}).trace());
  EXPECT_EQ(program.counters.count("program_edges_inferred"), 0U);
  EXPECT_EQ(program.counters.count("program_delays_unexplained"), 3U);
  EXPECT_EQ(program.counters.count("program_time_unexplained"), 1U);
}

// 30 after A ended is too late to have waited for it.
TEST(BuilderLags, what_a_graph_starts_long_after_another_stream_ended_is_unexplained) {
  const program::Program program = graph_on_another_stream(200);
  EXPECT_EQ(program.counters.count("program_edges_inferred"), 0U);
  EXPECT_EQ(program.counters.count("program_delays_unexplained"), 1U);
}

}  // namespace
}  // namespace bubblesim::workload
