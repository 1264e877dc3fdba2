// Dependencies between streams, and operations without a launch. Times in us.
#include <gtest/gtest.h>

#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

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
     {{10, 50}, {53, 80}}, {{0, 20, {{10, 70}, {73, 100}}}}, {{"program_edges_inferred", 1}}}});
}

// B starts 3 after A's end at 50. With A 20 longer: 70 + 3.
TEST(BuilderEdges, ARecordedEdgeHoldsItsOperation) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 1, 10, 50}).kernel({5, 6, 53, 80, 1}).edge(0, 1);
  const program::Program program = must_build(job.trace());
  ASSERT_EQ(program.edges.size(), 1U);
  EXPECT_EQ(program.edges[0].before, 0U);
  EXPECT_EQ(microseconds(program.edges[0].lag), 3);
  EXPECT_EQ(program.counters.count("program_edges_inferred"), 0U);
  EXPECT_EQ(replayed(program), (Spans{{10, 50}, {53, 80}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 20), (Spans{{10, 70}, {73, 100}}));
}

TEST(BuilderEdges, AnEdgeThatContradictsTheTimesIsDropped) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 1, 10, 50}).kernel({5, 6, 49, 80, 1}).edge(0, 1);
  EXPECT_TRUE(must_build(job.trace()).edges.empty());
}

TEST(BuilderEdges, AnEdgeStatedTwiceIsKeptOnce) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 1, 10, 50}).call(HostCallKind::kStreamWaitEvent, {2, 3}).kernel({5, 6, 53, 80, 1})
      .edge(0, 1).edge(0, 1);
  EXPECT_EQ(must_build(job.trace()).edges.size(), 1U);
}

// A on a blocking stream, B on stream 0, C on the blocking one, D on one that does not block: B
// starts 2 after A, C 3 after B. With A 20 longer both move with it, D does not.
TEST(BuilderEdges, TheLegacyDefaultStreamAndBlockingStreamsOrderEachOther) {
  using traces::StreamKind;
  TraceBuilder job(0, 1, 3);
  job.stream_kind(0, StreamKind::kLegacyDefault).stream_kind(1, StreamKind::kBlocking)
      .stream_kind(2, StreamKind::kNonBlocking).kernel({0, 1, 10, 50, 1}).kernel({2, 3, 52, 60})
      .kernel({4, 5, 63, 70, 1}).kernel({65, 66, 75, 80, 2});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_edges_of_default_stream"), 2U);
  EXPECT_EQ(replayed(program), (Spans{{10, 50}, {52, 60}, {63, 70}, {75, 80}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 20), (Spans{{10, 70}, {72, 80}, {83, 90}, {75, 80}}));
  job.stream_kind(0, StreamKind::kUnknown);
  EXPECT_TRUE(must_build(job.trace()).edges.empty());
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

// As AWaitForAnEventHoldsTheThreadsNextLaunch, but the event's record is on stream 1, before which
// nothing was launched there: the wait waited for nothing, and no guess is made.
TEST(BuilderEdges, AWaitWhoseEventIsNamedIsNotGuessedAt) {
  TraceBuilder job(0, 1, 3);
  job.kernel({0, 1, 10, 50}).record_event(2, 3, 1, 7).await_event(3, 4, 2, 7)
      .kernel({5, 6, 53, 80, 2});
  const program::Program program = must_build(job.trace());
  EXPECT_TRUE(program.edges.empty());
  EXPECT_EQ(program.counters.count("program_edges_inferred"), 0U);
}

/// Stream 0 ends at 50. After a wait, the thread launches on stream 1 and on stream 2, which
/// starts at `second`.
TraceBuilder wait_of_one_of_two(std::int64_t second) {
  TraceBuilder job(0, 1, 3);
  job.kernel({0, 1, 10, 50}).call(HostCallKind::kStreamWaitEvent, {3, 4})
      .kernel({60, 61, 65, 90, 1}).kernel({62, 63, second, 300, 2});
  return job;
}

// Both started on their launches: either stream may have waited, for what ran from 10 to 50.
TEST(BuilderEdges, WhichOfTwoStreamsWaitsIsDoubtful) {
  const program::Program program = must_build(wait_of_one_of_two(67).trace());
  EXPECT_EQ(program.ops[1].edge_count, 1);
  EXPECT_EQ(program.counters.count("program_stream_waits_unknown"), 1U);
  EXPECT_EQ(program.counters.count("program_what_ifs_doubtful"), 1U);  // 10 to 65 of 300
}

// The kernel that a thread launched before its next record of an event is the only one.
TEST(BuilderEdges, WhatIsLaunchedBehindTheNextEventDidNotWait) {
  TraceBuilder job = wait_of_one_of_two(67);
  job.call(HostCallKind::kEventRecord, {61, 62});
  const program::Program program = must_build(job.trace());
  ASSERT_EQ(program.edges.size(), 1U);
  EXPECT_EQ(program.ops[1].edge_count, 1);
  EXPECT_EQ(program.counters.count("program_stream_waits_unknown"), 0U);
}

// Launched at 5, it could have started then, and did as stream 0 ended.
TEST(BuilderEdges, AStreamThatSeemsToWaitIsNotDoubtful) {
  TraceBuilder job(0, 1, 3);
  job.kernel({0, 1, 4, 50}).call(HostCallKind::kStreamWaitEvent, {3, 4}).kernel({5, 6, 53, 90, 1})
      .kernel({7, 8, 10, 100, 2});
  const program::Program program = must_build(job.trace());
  ASSERT_EQ(program.edges.size(), 1U);
  EXPECT_EQ(program.ops[1].edge_count, 1);
  EXPECT_EQ(program.counters.count("program_stream_waits_unknown"), 0U);
}

// At the wait, streams 0, 1 and 2 had launched what ended at 50, 60 and 200. The waiter started
// at 63: 200 is too late, 60 is the latest.
TEST(BuilderEdges, AWaitIsForTheLatestEndOnOtherStreamsBeforeTheStart) {
  TraceBuilder job(0, 1, 4);
  job.kernel({0, 1, 10, 50}).kernel({1, 2, 11, 60, 1}).kernel({2, 3, 12, 200, 2})
      .call(HostCallKind::kStreamWaitEvent, {3, 4}).kernel({5, 6, 63, 80, 3});
  const program::Program program = must_build(job.trace());
  ASSERT_EQ(program.edges.size(), 1U);
  EXPECT_EQ(program.edges[0].before, 1U);
  EXPECT_EQ(replayed(program), (Spans{{10, 50}, {11, 60}, {12, 200}, {63, 80}}));
}

// Thread 1's launch comes first, but the wait was thread 0's.
TEST(BuilderEdges, AWaitHoldsNoOtherThreadsLaunch) {
  TraceBuilder job(0, 2, 3);
  job.kernel({0, 1, 10, 50}).call(HostCallKind::kStreamWaitEvent, {2, 3})
      .kernel({4, 5, 55, 60, 1, 1}).kernel({6, 7, 53, 80, 2});
  const program::Program program = must_build(job.trace());
  ASSERT_EQ(program.edges.size(), 1U);
  EXPECT_EQ(program.ops[1].edge_count, 0);
  EXPECT_EQ(program.ops[2].edge_count, 1);
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

}  // namespace
}  // namespace bubblesim::workload
