// Dependencies between streams, and operations without a launch. Times in us.
#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

/// Stream 0 ends at 50. After a wait, the thread launches on stream 1 and on stream 2, which
/// starts at `second`.
TraceBuilder wait_of_one_of_two(std::int64_t second) {
  TraceBuilder job(0, 1, 3);
  job.kernel({0, 1, 10, 50}).call(HostCallKind::kStreamWaitEvent, {3, 4})
      .kernel({60, 61, 65, 90, 1}).kernel({62, 63, second, 300, 2});
  return job;
}

/// A on a blocking stream, B on stream 0, C on the blocking one, D on one that does not block.
TraceBuilder around_stream_0(traces::StreamKind kind) {
  return TraceBuilder(0, 1, 3).stream_kind(0, kind).stream_kind(1, traces::StreamKind::kBlocking)
      .stream_kind(2, traces::StreamKind::kNonBlocking).kernel({0, 1, 10, 50, 1})
      .kernel({2, 3, 52, 60}).kernel({4, 5, 63, 70, 1}).kernel({65, 66, 75, 80, 2});
}

TEST(BuilderEdges, ReplaysMoveWithWhatTheyWaitFor) {
  using traces::StreamKind;
  expect_replays({
    // A on blocking stream 1 until 50; stream 3, which does not block, waits for an event recorded
    // on stream 0, which has no operation: B starts 2 after A.
    {"AnEventOfTheDefaultStreamComesAfterBlockingStreams",
     TraceBuilder(0, 1, 4).stream_kind(0, StreamKind::kLegacyDefault)
         .stream_kind(1, StreamKind::kBlocking).stream_kind(3, StreamKind::kNonBlocking)
         .kernel({0, 1, 10, 50, 1}).record_event(2, 3, 0, 7).await_event(3, 4, 3, 7)
         .kernel({5, 6, 52, 60, 3}),
     {}, {{0, 20, {{10, 70}, {72, 80}}}}},
    // A on stream 2, which does not block, until 50. Stream 0 waits for it and has no operation; B
    // on blocking stream 1, launched after that wait, starts 2 after A.
    {"BlockingStreamsComeAfterAWaitOfTheDefaultStream",
     TraceBuilder(0, 1, 3).stream_kind(0, StreamKind::kLegacyDefault)
         .stream_kind(1, StreamKind::kBlocking).stream_kind(2, StreamKind::kNonBlocking)
         .kernel({0, 1, 10, 50, 2}).record_event(2, 3, 2, 7).await_event(3, 4, 0, 7)
         .kernel({5, 6, 52, 60, 1}),
     {}, {{0, 20, {{10, 70}, {72, 80}}}}},
    {"AWaitForAnEventHoldsTheThreadsNextLaunch",
     TraceBuilder(0, 1, 2).kernel({0, 1, 10, 50}).call(HostCallKind::kEventRecord, {2, 3})
         .call(HostCallKind::kStreamWaitEvent, {3, 4}).kernel({5, 6, 53, 80, 1}),
     {{10, 50}, {53, 80}}, {{0, 20, {{10, 70}, {73, 100}}}}, {{"program_edges_inferred", 1}}},
    {"AnEdgeThatContradictsTheTimesIsDropped",
     TraceBuilder(0, 1, 2).kernel({0, 1, 10, 50}).kernel({5, 6, 49, 80, 1}).edge(0, 1),
     {}, {}, {}, {}, Edges{}},
    {"AnEdgeStatedTwiceIsKeptOnce",
     TraceBuilder(0, 1, 2).kernel({0, 1, 10, 50}).call(HostCallKind::kStreamWaitEvent, {2, 3})
         .kernel({5, 6, 53, 80, 1}).edge(0, 1).edge(0, 1),
     {}, {}, {}, {}, Edges{0}},
    // As AWaitForAnEventHoldsTheThreadsNextLaunch, but the event's record is on stream 1, before
    // which nothing was launched there: the wait waited for nothing, and no guess is made.
    {"AWaitWhoseEventIsNamedIsNotGuessedAt",
     TraceBuilder(0, 1, 3).kernel({0, 1, 10, 50}).record_event(2, 3, 1, 7).await_event(3, 4, 2, 7)
         .kernel({5, 6, 53, 80, 2}),
     {}, {}, {{"program_edges_inferred", 0}}, {}, Edges{}},
    // Both started on their launches: either stream may have waited, for what ran from 10 to 50. Of
    // the recording's 300, 10 to 65 are doubtful.
    {"WhichOfTwoStreamsWaitsIsDoubtful", wait_of_one_of_two(67), {}, {},
     {{"program_stream_waits_unknown", 1}, {"program_what_ifs_doubtful", 1}}, {}, {}, {{1, 1}}},
    // The kernel that a thread launched before its next record of an event is the only one.
    {"WhatIsLaunchedBehindTheNextEventDidNotWait",
     wait_of_one_of_two(67).call(HostCallKind::kEventRecord, {61, 62}), {}, {},
     {{"program_stream_waits_unknown", 0}}, {}, Edges{0}, {{1, 1}}},
    // Launched at 5, it could have started then, and did as stream 0 ended.
    {"AStreamThatSeemsToWaitIsNotDoubtful",
     TraceBuilder(0, 1, 3).kernel({0, 1, 4, 50}).call(HostCallKind::kStreamWaitEvent, {3, 4})
         .kernel({5, 6, 53, 90, 1}).kernel({7, 8, 10, 100, 2}),
     {}, {}, {{"program_stream_waits_unknown", 0}}, {}, Edges{0}, {{1, 1}}},
    // At the wait, streams 0, 1 and 2 had launched what ended at 50, 60 and 200. The waiter started
    // at 63: 200 is too late, 60 is the latest.
    {"AWaitIsForTheLatestEndOnOtherStreamsBeforeTheStart",
     TraceBuilder(0, 1, 4).kernel({0, 1, 10, 50}).kernel({1, 2, 11, 60, 1})
         .kernel({2, 3, 12, 200, 2}).call(HostCallKind::kStreamWaitEvent, {3, 4})
         .kernel({5, 6, 63, 80, 3}),
     {{10, 50}, {11, 60}, {12, 200}, {63, 80}}, {}, {}, {}, Edges{1}},
    // Thread 1's launch comes first, but the wait was thread 0's.
    {"AWaitHoldsNoOtherThreadsLaunch",
     TraceBuilder(0, 2, 3).kernel({0, 1, 10, 50}).call(HostCallKind::kStreamWaitEvent, {2, 3})
         .kernel({4, 5, 55, 60, 1, 1}).kernel({6, 7, 53, 80, 2}),
     {}, {}, {}, {}, Edges{0}, {{1, 0}, {2, 1}}},
    // B starts 3 after A's end at 50. With A 20 longer: 70 + 3.
    {"ARecordedEdgeHoldsItsOperation",
     TraceBuilder(0, 1, 2).kernel({0, 1, 10, 50}).kernel({5, 6, 53, 80, 1}).edge(0, 1),
     {{10, 50}, {53, 80}}, {{0, 20, {{10, 70}, {73, 100}}}}, {{"program_edges_inferred", 0}}, {},
     Edges{0}},
    // B starts 2 after A, C 3 after B. With A 20 longer both move with it, D does not.
    {"TheLegacyDefaultStreamAndBlockingStreamsOrderEachOther",
     around_stream_0(StreamKind::kLegacyDefault), {{10, 50}, {52, 60}, {63, 70}, {75, 80}},
     {{0, 20, {{10, 70}, {72, 80}, {83, 90}, {75, 80}}}},
     {{"program_edges_of_default_stream", 2}}},
    {"AStreamOfUnknownKindOrdersNone", around_stream_0(StreamKind::kUnknown), {}, {}, {}, {},
     Edges{}}});
}

// Each iteration has a kernel of 60 on stream 0 and one of 40 on a blocking stream, behind each
// other on the device for 100: the first one of a pass waits for the last one of the pass before.
TEST(BuilderEdges, TheLegacyDefaultStreamOrdersPassesToo) {
  using traces::StreamKind;
  TraceBuilder job(0, 1, 2);
  job.stream_kind(0, StreamKind::kLegacyDefault).stream_kind(1, StreamKind::kBlocking);
  for (int i = 0; i < 3; ++i) {
    const int host = 100 * i;
    job.iteration(host, host + 100).kernel({host + 1, host + 2, host + 150, host + 210})
        .kernel({host + 3, host + 4, host + 210, host + 250, 1});
  }
  const program::Program program = must_build(job.trace(), Window::kIterations);
  ASSERT_EQ(program.ops.size(), 4U);
  ASSERT_EQ(program.edges.size(), 4U);
  EXPECT_EQ(program.edges[program.ops[0].first_edge].before, 3U);
  EXPECT_EQ(program.edges[program.ops[0].first_edge].passes_back, 1U);
  for (const std::uint32_t op : {1U, 2U, 3U}) {
    EXPECT_EQ(program.edges[program.ops[op].first_edge].before, op - 1);
    EXPECT_EQ(program.edges[program.ops[op].first_edge].passes_back, 0U);
  }
}

TEST(BuilderOrphans, ReplaysMoveWithWhatTheyWaitFor) {
  expect_replays({
    // It followed 10 after the operation before it. With that 15 longer: 35 + 10.
    {"AnOperationWithoutALaunchFollowsTheOneBeforeItOnItsStream",
     TraceBuilder().kernel({0, 5, 10, 20}).orphan({.start = 30, .end = 40}),
     {{10, 20}, {30, 40}}, {{0, 15, {{10, 35}, {45, 55}}}}, {{"program_ops_without_launch", 1}}},
    {"ATraceWithoutAnyHostCallIsReplayedAsRecorded",
     TraceBuilder(0, 1, 2).orphan({.start = 0, .end = 20})
         .orphan({.start = 5, .end = 60, .stream = 1}).orphan({.start = 30, .end = 40}),
     {{0, 20}, {5, 60}, {30, 40}}, {}, {{"program_ops_without_launch", 3}}},
    // The launch between the two kernels put nothing on the device: its time stays, in the think
    // time of the next call.
    {"ALaunchWithoutAnOperationIsCountedAndKeepsItsTime",
     TraceBuilder().kernel({0, 5, 10, 20}).call(HostCallKind::kLaunchKernel, {30, 90})
         .kernel({100, 105, 110, 120}),
     {{10, 20}, {110, 120}}, {}, {{"program_launches_without_op", 1}}}});
}

// An operation of another stream whose launch is not known: a thread of its own starts it.
TEST(BuilderOrphans, TheFirstOfAStreamStartsWhenItWasRecorded) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 5, 10, 20}).orphan({.start = 40, .end = 60, .stream = 1});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_ops_without_launch"), 1U);
  EXPECT_EQ(program.threads.back().name, "launched outside the trace");
  EXPECT_EQ(replayed(program), (Spans{{10, 20}, {40, 60}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 100), (Spans{{10, 120}, {40, 60}}));
}

// How the time before an operation's start is split among what it waited for. Times in us.

TEST(BuilderLags, DelaysStayOnWhatTheyBelongTo) {
  constexpr std::int64_t kTenSeconds = 10'000'000;
  expect_replays({
    // Lags 8, 8 and 5: the median is 8; the third cannot have needed more than its 5.
    {.name = "TheUsualLaunchLagIsTheMedianOverOperationsOfIdleStreams",
     .job = TraceBuilder().kernel({0, 3, 8, 20}).kernel({100, 103, 108, 120})
         .kernel({200, 203, 205, 220}),
     .recorded = {{8, 20}, {108, 120}, {205, 220}},
     .lags = {{0, 8}, {1, 8}, {2, 5}}, .gaps = {{1, 0}}},
    // Gaps 2, 3, 2: the usual one is 2. The third operation's gap is 3, so 1 remains, on its gap.
    {.name = "TheUsualGapIsTheMedianOverOperationsThatQueued",
     .job = TraceBuilder().kernel({0, 1, 10, 50}).kernel({1, 2, 52, 60}).kernel({2, 3, 63, 70})
         .kernel({3, 4, 72, 80}),
     .recorded = {{10, 50}, {52, 60}, {63, 70}, {72, 80}},
     .lags = {{1, 10}}, .gaps = {{1, 2}, {2, 3}}},
    // Usual lag 8; the third operation started 50 after its call: 42 are unexplained.
    {.name = "ADelayThatNothingExplainsStaysOnTheLaunchAndIsCounted",
     .job = TraceBuilder().kernel({0, 3, 8, 20}).kernel({100, 103, 108, 120})
         .kernel({200, 203, 250, 260}),
     .recorded = {{8, 20}, {108, 120}, {250, 260}},
     .counters = {{"program_delays_unexplained", 1}}, .lags = {{2, 50}}},
    // Usual gap 5; the third operation followed after 30: 25 are unexplained, and lie on the gap,
    // since the stream (60) was satisfied after the launch (2 + 10).
    {.name = "ADelayThatNothingExplainsStaysOnTheDependencySatisfiedLast",
     .job = TraceBuilder().kernel({0, 1, 10, 50}).kernel({1, 2, 55, 60}).kernel({2, 3, 90, 100})
         .kernel({3, 4, 105, 110}),
     .recorded = {{10, 50}, {55, 60}, {90, 100}, {105, 110}},
     .counters = {{"program_delays_unexplained", 1}}, .lags = {{2, 10}}, .gaps = {{2, 30}}},
    // The only operation says 5, its call came at 10: the host's clock is 5 ahead. Begun at -5, the
    // recording has its operation from 10 to 25.
    {.name = "OperationsRecordedBeforeTheirLaunchesTellTheClocksOffset",
     .job = TraceBuilder().call(traces::HostCallKind::kOther, {0, 1}).kernel({10, 12, 5, 20}),
     .recorded = {{10, 25}},
     .counters = {{"program_backward_times", 0}, {"program_host_clocks_moved_ns", 5'000}}},
    // [40, 60] begins within [10, 50]: 10 remain after it. [42, 45] lies wholly before 60: none
    // does.
    {.name = "OverlapsWithinAStreamAreTrimmed",
     .job = TraceBuilder().kernel({0, 1, 10, 50}).kernel({1, 2, 40, 60}).kernel({2, 3, 42, 45}),
     .recorded = {{10, 50}, {50, 60}, {60, 60}}, .counters = {{"program_overlaps_trimmed", 2}}},
    // 10 s between two calls is more than a step can hold (4.29 s): pauses fill the rest.
    {.name = "ALongPauseOfTheHostBecomesSeveralSteps",
     .job = TraceBuilder().kernel({0, 3, 5, 20})
         .kernel({kTenSeconds, kTenSeconds + 3, kTenSeconds + 5, kTenSeconds + 20}),
     .recorded = {{5, 20}, {kTenSeconds + 5, kTenSeconds + 20}},
     .counters = {{"program_spans_clamped", 0}}}});
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
