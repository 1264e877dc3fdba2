// Dependencies between streams, and operations without a launch. Times in us.
#include <gtest/gtest.h>

#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

// B starts 3 after A's end at 50. With A 20 longer: 70 + 3.
TEST(BuilderEdges, ARecordedEdgeHoldsItsOperation) {
  TraceBuilder job(0, 1, 2);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 50})
      .kernel({.called = 5, .returned = 6, .start = 53, .end = 80, .stream = 1})
      .edge(0, 1);
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
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 50})
      .kernel({.called = 5, .returned = 6, .start = 49, .end = 80, .stream = 1})
      .edge(0, 1);
  EXPECT_TRUE(must_build(job.trace()).edges.empty());
}

TEST(BuilderEdges, AnEdgeStatedTwiceIsKeptOnce) {
  TraceBuilder job(0, 1, 2);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 50})
      .call(HostCallKind::kStreamWaitEvent, {.start = 2, .end = 3})
      .kernel({.called = 5, .returned = 6, .start = 53, .end = 80, .stream = 1})
      .edge(0, 1)
      .edge(0, 1);
  EXPECT_EQ(must_build(job.trace()).edges.size(), 1U);
}

// As the next test, but the event's record is on stream 1, before which nothing was launched
// there: the wait waited for nothing, and no guess is made.
TEST(BuilderEdges, AWaitWhoseEventIsNamedIsNotGuessedAt) {
  TraceBuilder job(0, 1, 3);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 50})
      .call(HostCallKind::kEventRecord, {.start = 2, .end = 3, .stream = 1, .event = 7})
      .call(HostCallKind::kStreamWaitEvent, {.start = 3, .end = 4, .stream = 2, .event = 7})
      .kernel({.called = 5, .returned = 6, .start = 53, .end = 80, .stream = 2});
  const program::Program program = must_build(job.trace());
  EXPECT_TRUE(program.edges.empty());
  EXPECT_EQ(program.counters.count("program_edges_inferred"), 0U);
}

TEST(BuilderEdges, AWaitForAnEventHoldsTheThreadsNextLaunch) {
  TraceBuilder job(0, 1, 2);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 50})
      .call(HostCallKind::kEventRecord, {.start = 2, .end = 3})
      .call(HostCallKind::kStreamWaitEvent, {.start = 3, .end = 4})
      .kernel({.called = 5, .returned = 6, .start = 53, .end = 80, .stream = 1});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_edges_inferred"), 1U);
  EXPECT_EQ(replayed(program), (Spans{{10, 50}, {53, 80}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 20), (Spans{{10, 70}, {73, 100}}));
}

// At the wait, streams 0, 1 and 2 had launched what ended at 50, 60 and 200. The waiter started
// at 63: 200 is too late, 60 is the latest.
TEST(BuilderEdges, AWaitIsForTheLatestEndOnOtherStreamsBeforeTheStart) {
  TraceBuilder job(0, 1, 4);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 50})
      .kernel({.called = 1, .returned = 2, .start = 11, .end = 60, .stream = 1})
      .kernel({.called = 2, .returned = 3, .start = 12, .end = 200, .stream = 2})
      .call(HostCallKind::kStreamWaitEvent, {.start = 3, .end = 4})
      .kernel({.called = 5, .returned = 6, .start = 63, .end = 80, .stream = 3});
  const program::Program program = must_build(job.trace());
  ASSERT_EQ(program.edges.size(), 1U);
  EXPECT_EQ(program.edges[0].before, 1U);
  EXPECT_EQ(replayed(program), (Spans{{10, 50}, {11, 60}, {12, 200}, {63, 80}}));
}

// Thread 1's launch comes first, but the wait was thread 0's.
TEST(BuilderEdges, AWaitHoldsNoOtherThreadsLaunch) {
  TraceBuilder job(0, 2, 3);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 50})
      .call(HostCallKind::kStreamWaitEvent, {.start = 2, .end = 3})
      .kernel({.called = 4, .returned = 5, .start = 55, .end = 60, .stream = 1, .thread = 1})
      .kernel({.called = 6, .returned = 7, .start = 53, .end = 80, .stream = 2});
  const program::Program program = must_build(job.trace());
  ASSERT_EQ(program.edges.size(), 1U);
  EXPECT_EQ(program.ops[1].edge_count, 0);
  EXPECT_EQ(program.ops[2].edge_count, 1);
}

// An operation of another stream whose launch is not known: a thread of its own starts it.
TEST(BuilderOrphans, TheFirstOfAStreamStartsWhenItWasRecorded) {
  TraceBuilder job(0, 1, 2);
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 20})
      .orphan({.start = 40, .end = 60, .stream = 1});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_ops_without_launch"), 1U);
  EXPECT_EQ(program.threads.back().name, "launched outside the trace");
  EXPECT_EQ(replayed(program), (Spans{{10, 20}, {40, 60}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 100), (Spans{{10, 120}, {40, 60}}));
}

// It followed 10 after the operation before it. With that 15 longer: 35 + 10.
TEST(BuilderOrphans, AnOperationWithoutALaunchFollowsTheOneBeforeItOnItsStream) {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 20})
      .orphan({.start = 30, .end = 40});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_ops_without_launch"), 1U);
  EXPECT_EQ(replayed(program), (Spans{{10, 20}, {30, 40}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 15), (Spans{{10, 35}, {45, 55}}));
}

TEST(BuilderOrphans, ATraceWithoutAnyHostCallIsReplayedAsRecorded) {
  TraceBuilder job(0, 1, 2);
  job.orphan({.start = 0, .end = 20})
      .orphan({.start = 5, .end = 60, .stream = 1})
      .orphan({.start = 30, .end = 40});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_ops_without_launch"), 3U);
  EXPECT_EQ(replayed(program), (Spans{{0, 20}, {5, 60}, {30, 40}}));
}

// The launch between the two kernels put nothing on the device: its time stays, in the think
// time of the next call.
TEST(BuilderOrphans, ALaunchWithoutAnOperationIsCountedAndKeepsItsTime) {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 20})
      .call(HostCallKind::kLaunchKernel, {.start = 30, .end = 90})
      .kernel({.called = 100, .returned = 105, .start = 110, .end = 120});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_launches_without_op"), 1U);
  EXPECT_EQ(replayed(program), (Spans{{10, 20}, {110, 120}}));
}

}  // namespace
}  // namespace bubblesim::workload
