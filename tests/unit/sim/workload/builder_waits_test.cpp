// What synchronising calls waited for. Each test replays the recording, then stretches an
// operation: the calls that waited for it return later by as much. Times in us.
#include <gtest/gtest.h>

#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

std::vector<program::StepKind> kinds(const program::Program& program, std::size_t thread = 0) {
  std::vector<program::StepKind> result;
  for (const program::Step& step : program.threads[thread].steps) result.push_back(step.kind);
  return result;
}

// The copy ends at 50, its call returns at 60, the next launch is 5 later.
// With a copy of 60: 70, 80, 85, and 10 of launch lag: 95.
TEST(BuilderWaits, ABlockingCopyReturnsALagAfterItsEnd) {
  TraceBuilder job;
  job.copy({.called = 0, .returned = 60, .start = 10, .end = 50})
      .kernel({.called = 65, .returned = 67, .start = 75, .end = 80});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(kinds(program),
            (std::vector{program::StepKind::kIteration, program::StepKind::kLaunchAndWait,
                         program::StepKind::kLaunch, program::StepKind::kEnd}));
  EXPECT_EQ(replayed(program), (Spans{{10, 50}, {75, 80}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 20), (Spans{{10, 70}, {95, 100}}));
}

// The call returned at 5, the copy ended at 50: the next launch does not care.
TEST(BuilderWaits, AnAsynchronousCopyReturnsAtOnce) {
  TraceBuilder job(0, 1, 2);
  job.copy({.called = 0, .returned = 5, .start = 10, .end = 50})
      .kernel({.called = 65, .returned = 67, .start = 75, .end = 80, .stream = 1});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(kinds(program)[1], program::StepKind::kLaunch);
  EXPECT_EQ(replayed_with_longer(program, 0, 200), (Spans{{10, 250}, {75, 80}}));
}

// As above, but the call was 60 long, and the copy ended within it by chance: names say which one
// waits.
TEST(BuilderWaits, NamesSayWhichCopiesBlock) {
  using traces::CopyDirection;
  struct Case {
    std::string_view call, copy;
    CopyDirection direction;
    bool blocks;
  };
  for (const Case& at : {Case{"cudaMemcpyAsync", "Memcpy DtoD", CopyDirection::kDeviceToDevice,
                              false},
                         Case{"cudaMemcpyAsync", "Memcpy HtoD (Pinned -> Device)",
                              CopyDirection::kHostToDevice, false},
                         Case{"cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)",
                              CopyDirection::kDeviceToHost, true},
                         Case{"hipMemcpyWithStream", "CopyDeviceToHost",
                              CopyDirection::kDeviceToHost, true}}) {
    TraceBuilder job;
    job.copy({.called = 0, .returned = 60, .start = 10, .end = 50, .name = at.copy,
              .call = at.call, .direction = at.direction});
    EXPECT_EQ(kinds(must_build(job.trace()))[1], at.blocks ? program::StepKind::kLaunchAndWait
                                                           : program::StepKind::kLaunch)
        << at.copy;
  }
}

// The copy ends at 53 by the device's clock, its call returns at 50: the host's clock is 3 behind.
// By the host's clock the launch is then at 3, the copy from 13, the kernel from 78.
TEST(BuilderWaits, ACopyThatBlocksTellsHowFarTheClocksAreApart) {
  TraceBuilder job;
  job.copy({.called = 0, .returned = 50, .start = 13, .end = 53, .name = "CopyDeviceToHost",
            .call = "hipMemcpyWithStream", .direction = traces::CopyDirection::kDeviceToHost})
      .kernel({.called = 65, .returned = 67, .start = 78, .end = 83});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(kinds(program)[1], program::StepKind::kLaunchAndWait);
  EXPECT_EQ(replayed_with_longer(program, 0, 20)[1].start, replayed(program)[1].start + 20);
}

// The kernel ends 20 into a call of 1000: 977 and the usual 3 are the allocation's own. Without the
// wait it takes as long, and with a kernel of 100 more it ends 100 later.
TEST(BuilderWaits, WhatAnAllocationDoesItselfStaysWhateverItWaitedFor) {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 40})
      .call(HostCallKind::kAlloc, {.start = 20, .end = 1020})
      .kernel({.called = 1030, .returned = 1032, .start = 1040, .end = 1050});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(replayed(program), (Spans{{10, 40}, {1040, 1050}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 100), (Spans{{10, 140}, {1140, 1150}}));
  // From 12 on: a call of 2 at 20, and 987 less the 3 of noticing.
  EXPECT_EQ(replayed_with_longer(program, 0, -28)[1].start, 1040 - 21);
}

TEST(BuilderWaits, AMemsetNeverWaits) {
  TraceBuilder job;
  job.memset({.called = 0, .returned = 60, .start = 10, .end = 50});
  EXPECT_EQ(kinds(must_build(job.trace()))[1], program::StepKind::kLaunch);
}

// The kernel ends at 100, the call returns at 105. With 20 more: 120, 125, 130, 140.
TEST(BuilderWaits, AStreamSynchronisationReturnsALagAfterTheStreamsEnd) {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 100})
      .call(HostCallKind::kStreamSync, {.start = 6, .end = 105, .stream = 0})
      .kernel({.called = 110, .returned = 112, .start = 120, .end = 130});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(kinds(program)[2], program::StepKind::kWaitStream);
  EXPECT_EQ(program.counters.count("program_waits_inferred"), 0U);
  EXPECT_EQ(replayed(program), (Spans{{10, 100}, {120, 130}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 20), (Spans{{10, 120}, {140, 150}}));
}

// Stream 0 ends at 60, stream 1 at 100, the call returns at 105: it waited for stream 1.
TEST(BuilderWaits, AStreamThatWasNotRecordedIsTheOneThatEndedLastWithinTheCall) {
  TraceBuilder job(0, 1, 3);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 60})
      .kernel({.called = 2, .returned = 3, .start = 12, .end = 100, .stream = 1})
      .call(HostCallKind::kStreamSync, {.start = 6, .end = 105})
      .kernel({.called = 110, .returned = 112, .start = 120, .end = 130, .stream = 2});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_waits_inferred"), 1U);
  EXPECT_EQ(replayed(program), (Spans{{10, 60}, {12, 100}, {120, 130}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 200), (Spans{{10, 260}, {12, 100}, {120, 130}}));
  EXPECT_EQ(replayed_with_longer(program, 1, 20), (Spans{{10, 60}, {12, 120}, {140, 150}}));
}

// The kernel ended at 20; the call at 50 returned after 3 of its own. A kernel that ends at 120
// makes it wait, and return the usual 3 later: 123, then 7 and 10 to the next start.
TEST(BuilderWaits, ACallThatFoundNothingToWaitForStillWaitsIfTheDeviceIsLate) {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 20})
      .call(HostCallKind::kStreamSync, {.start = 50, .end = 53, .stream = 0})
      .kernel({.called = 60, .returned = 62, .start = 70, .end = 80});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(replayed(program), (Spans{{10, 20}, {70, 80}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 100), (Spans{{10, 120}, {140, 150}}));
}

// It returned at 15, the stream's kernel ended at 100: whatever the call did, it did not wait.
TEST(BuilderWaits, ACallThatReturnedBeforeItsStreamEndedIsHostTimeOnly) {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 100})
      .call(HostCallKind::kStreamSync, {.start = 12, .end = 15, .stream = 0});
  EXPECT_EQ(kinds(must_build(job.trace()))[2], program::StepKind::kPause);
}

// Nothing ran on stream 1, which the call waited for.
TEST(BuilderWaits, AWaitForAStreamWithoutOperationsIsCounted) {
  TraceBuilder job(0, 1, 2);
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 100})
      .call(HostCallKind::kStreamSync, {.start = 12, .end = 105, .stream = 1});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(kinds(program)[2], program::StepKind::kPause);
  EXPECT_EQ(program.counters.count("program_waits_for_empty_streams"), 1U);
}

// Streams end at 60 and 100, the call returns at 105: 5 after the last.
TEST(BuilderWaits, ADeviceSynchronisationWaitsForEveryStream) {
  TraceBuilder job(0, 1, 2);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 60})
      .kernel({.called = 2, .returned = 3, .start = 12, .end = 100, .stream = 1})
      .call(HostCallKind::kDeviceSync, {.start = 6, .end = 105})
      .kernel({.called = 110, .returned = 112, .start = 120, .end = 130, .stream = 1});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(kinds(program)[3], program::StepKind::kWaitDevice);
  EXPECT_EQ(replayed(program), (Spans{{10, 60}, {12, 100}, {120, 130}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 60), (Spans{{10, 120}, {12, 100}, {140, 150}}));
}

TEST(BuilderWaits, AFreeWaitsIfDeviceWorkEndedWithinIt) {
  TraceBuilder waits;
  waits.kernel({.called = 0, .returned = 5, .start = 10, .end = 100})
      .call(HostCallKind::kFree, {.start = 12, .end = 105});
  EXPECT_EQ(kinds(must_build(waits.trace()))[2], program::StepKind::kWaitDevice);
  TraceBuilder does_not;
  does_not.kernel({.called = 0, .returned = 5, .start = 10, .end = 100})
      .call(HostCallKind::kFree, {.start = 110, .end = 115});
  EXPECT_EQ(kinds(must_build(does_not.trace()))[2], program::StepKind::kPause);
}

// A ends at 60, the call returns at 63; B is still running. With A 10 longer: 73, 80, 90.
TEST(BuilderWaits, AnEventSynchronisationWaitsForTheOperationThatEndedLastWithinIt) {
  TraceBuilder job(0, 1, 3);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 60})
      .kernel({.called = 2, .returned = 3, .start = 12, .end = 100, .stream = 1})
      .call(HostCallKind::kEventSync, {.start = 6, .end = 63})
      .kernel({.called = 70, .returned = 72, .start = 80, .end = 85, .stream = 2});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(kinds(program)[3], program::StepKind::kWaitOp);
  EXPECT_EQ(program.counters.count("program_waits_inferred"), 1U);
  EXPECT_EQ(replayed(program), (Spans{{10, 60}, {12, 100}, {80, 85}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 10), (Spans{{10, 70}, {12, 100}, {90, 95}}));
  EXPECT_EQ(replayed_with_longer(program, 1, 99), (Spans{{10, 60}, {12, 199}, {80, 85}}));
}

// Both waits return 3 before the only kernel that is pending ends: the clocks are 3 apart. A wait
// that returns 30 before it was for something else, and no clock is judged by it.
TEST(BuilderWaits, AnEventWithoutANameMayStandForTheOnlyWorkThatIsPending) {
  const auto moved_by_20 = [](std::int64_t early) {
    TraceBuilder job;
    job.kernel({.called = 0, .returned = 1, .start = 10, .end = 60})
        .call(HostCallKind::kEventSync, {.start = 6, .end = 60 - early})
        .kernel({.called = 70, .returned = 72, .start = 80, .end = 130})
        .call(HostCallKind::kEventSync, {.start = 75, .end = 127})
        .kernel({.called = 140, .returned = 142, .start = 150, .end = 160});
    const program::Program program = must_build(job.trace());
    return replayed_with_longer(program, 0, 20)[1].start - replayed(program)[1].start;
  };
  EXPECT_EQ(moved_by_20(3), 20);
  EXPECT_EQ(moved_by_20(30), 0);
}

// B on stream 1 ends last within the call, but the event was recorded on stream 0 after A alone:
// A ends at 40, the call returns at 63, a lag of 23. With A 10 longer all moves; with B longer not.
TEST(BuilderWaits, AnEventSynchronisationWaitsForWhatItsEventStandsFor) {
  TraceBuilder job(0, 1, 3);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 40})
      .call(HostCallKind::kEventRecord, {.start = 2, .end = 3, .stream = 0, .event = 7})
      .kernel({.called = 4, .returned = 5, .start = 12, .end = 60, .stream = 1})
      .call(HostCallKind::kEventSync, {.start = 6, .end = 63, .event = 7})
      .kernel({.called = 70, .returned = 72, .start = 80, .end = 85, .stream = 2});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_waits_inferred"), 0U);
  EXPECT_EQ(replayed(program), (Spans{{10, 40}, {12, 60}, {80, 85}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 10), (Spans{{10, 50}, {12, 60}, {90, 95}}));
  EXPECT_EQ(replayed_with_longer(program, 1, 20), (Spans{{10, 40}, {12, 80}, {80, 85}}));
}

// The kernel ends at 100, the allocation returns at 130; one in stream order waits for nothing.
TEST(BuilderWaits, AnAllocationThatReturnsWhenTheDeviceIsDoneWaitedForIt) {
  const auto with = [](std::string_view name) {
    TraceBuilder job;
    job.kernel({.called = 0, .returned = 5, .start = 10, .end = 100})
        .call(HostCallKind::kAlloc, {.start = 6, .end = 130})
        .kernel({.called = 135, .returned = 137, .start = 145, .end = 150});
    traces::RankTrace trace = job.trace();
    trace.host_calls[1].name = trace.names.intern(name);
    return must_build(trace);
  };
  EXPECT_EQ(replayed_with_longer(with("cudaMalloc"), 0, 20), (Spans{{10, 120}, {165, 170}}));
  EXPECT_EQ(replayed_with_longer(with("cudaMallocAsync"), 0, 20), (Spans{{10, 120}, {145, 150}}));
}

// As above, but the event is recorded on stream 2, which waits for A and has launched nothing
// since.
TEST(BuilderWaits, AnEventRecordedBehindAWaitStandsForWhatTheWaitIsFor) {
  TraceBuilder job(0, 1, 4);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 40})
      .call(HostCallKind::kEventRecord, {.start = 2, .end = 3, .stream = 0, .event = 7})
      .call(HostCallKind::kStreamWaitEvent, {.start = 3, .end = 4, .stream = 2, .event = 7})
      .call(HostCallKind::kEventRecord, {.start = 4, .end = 5, .stream = 2, .event = 8})
      .call(HostCallKind::kEventSync, {.start = 6, .end = 63, .event = 8})
      .kernel({.called = 70, .returned = 72, .start = 80, .end = 85, .stream = 3});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(replayed(program), (Spans{{10, 40}, {80, 85}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 10), (Spans{{10, 50}, {90, 95}}));
}

// Stream 2 waits for A on stream 0, which ends at 30, and for B on stream 1, which ends at 50, then
// an event is recorded there. The host waits for that until 55, 5 after B, and launches at 60 what
// runs from 70. With A 40 longer it ends at 70, the call at 75: 15 to the next operation, 90. With
// B 40 longer it ends at 90, the call at 95: 110.
TEST(BuilderWaits, AnEventRecordedBehindTwoWaitsStandsForBoth) {
  TraceBuilder job(0, 1, 4);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 30})
      .call(HostCallKind::kEventRecord, {.start = 1, .end = 2, .stream = 0, .event = 7})
      .kernel({.called = 2, .returned = 3, .start = 12, .end = 50, .stream = 1})
      .call(HostCallKind::kEventRecord, {.start = 3, .end = 4, .stream = 1, .event = 8})
      .call(HostCallKind::kStreamWaitEvent, {.start = 4, .end = 5, .stream = 2, .event = 7})
      .call(HostCallKind::kStreamWaitEvent, {.start = 5, .end = 6, .stream = 2, .event = 8})
      .call(HostCallKind::kEventRecord, {.start = 6, .end = 7, .stream = 2, .event = 9})
      .call(HostCallKind::kEventSync, {.start = 7, .end = 55, .event = 9})
      .kernel({.called = 60, .returned = 61, .start = 70, .end = 80, .stream = 3});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(kinds(program), (std::vector{program::StepKind::kIteration, program::StepKind::kLaunch,
                                         program::StepKind::kLaunch, program::StepKind::kWaitOp,
                                         program::StepKind::kWaitOp, program::StepKind::kLaunch,
                                         program::StepKind::kEnd}));
  EXPECT_EQ(replayed(program), (Spans{{10, 30}, {12, 50}, {70, 80}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 40), (Spans{{10, 70}, {12, 50}, {90, 100}}));
  EXPECT_EQ(replayed_with_longer(program, 1, 40), (Spans{{10, 30}, {12, 90}, {110, 120}}));
}

// Stream 1 waits for A and has no operation of its own: who synchronises with it waits for A.
TEST(BuilderWaits, AStreamSynchronisationWaitsForWhatTheStreamWaitsFor) {
  TraceBuilder job(0, 1, 3);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 40})
      .call(HostCallKind::kEventRecord, {.start = 2, .end = 3, .stream = 0, .event = 7})
      .call(HostCallKind::kStreamWaitEvent, {.start = 3, .end = 4, .stream = 1, .event = 7})
      .call(HostCallKind::kStreamSync, {.start = 6, .end = 45, .stream = 1})
      .kernel({.called = 50, .returned = 51, .start = 60, .end = 70, .stream = 2});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_waits_for_empty_streams"), 0U);
  EXPECT_EQ(replayed(program), (Spans{{10, 40}, {60, 70}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 20), (Spans{{10, 60}, {80, 90}}));
}

// The host launches A on stream 1, which ends at 40, then waits until 45 with `wait`, then launches
// at 50 on stream 2, which does not block, what runs from 60. Stream 0 has no operation.
program::Program behind_default_stream(traces::StreamKind one, HostCallKind wait) {
  TraceBuilder job(0, 1, 3);
  job.stream_kind(0, traces::StreamKind::kLegacyDefault).stream_kind(1, one)
      .stream_kind(2, traces::StreamKind::kNonBlocking)
      .kernel({.called = 0, .returned = 1, .start = 10, .end = 40, .stream = 1})
      .call(HostCallKind::kEventRecord, {.start = 2, .end = 3, .stream = 0, .event = 7})
      .call(wait, {.start = 6, .end = 45, .stream = 0, .event = 7})
      .kernel({.called = 50, .returned = 51, .start = 60, .end = 70, .stream = 2});
  return must_build(job.trace());
}

// With A 20 longer the wait is over at 65; a stream that does not block is no part of it.
TEST(BuilderWaits, EventsAndSynchronisationsOfTheDefaultStreamCoverBlockingStreams) {
  using traces::StreamKind;
  for (const HostCallKind wait : {HostCallKind::kEventSync, HostCallKind::kStreamSync}) {
    const program::Program blocks = behind_default_stream(StreamKind::kBlocking, wait);
    EXPECT_EQ(replayed(blocks), (Spans{{10, 40}, {60, 70}}));
    EXPECT_EQ(replayed_with_longer(blocks, 0, 20), (Spans{{10, 60}, {80, 90}}));
    const program::Program apart = behind_default_stream(StreamKind::kNonBlocking, wait);
    EXPECT_EQ(replayed_with_longer(apart, 0, 20), (Spans{{10, 60}, {60, 70}}));
  }
}

// The launch call took 100, of which the driver held it 90: its own cost is 10.
TEST(BuilderWaits, TimeHeldByAFullLaunchQueueIsNotTheCallsOwn) {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 100, .start = 110, .end = 120}).queue_full(5, 95);
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(microseconds(program.threads[0].steps[1].cost), 10);
}

TEST(BuilderWaits, AnEventSynchronisationWithinWhichNothingEndedIsHostTimeOnly) {
  TraceBuilder job;
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 60})
      .call(HostCallKind::kEventSync, {.start = 70, .end = 73});
  EXPECT_EQ(kinds(must_build(job.trace()))[2], program::StepKind::kPause);
}

// Thread 0 synchronises from 6 to 65 with what it had launched, which ended at 60. Thread 1
// launched at 20 what ran from 30 to 200: the synchronisation did not wait for that.
TEST(BuilderWaits, ADeviceSynchronisationDoesNotWaitForWhatIsLaunchedLater) {
  TraceBuilder job(0, 2, 2);
  job.kernel({.called = 0, .returned = 1, .start = 10, .end = 60})
      .call(HostCallKind::kDeviceSync, {.start = 6, .end = 65})
      .kernel({.called = 20, .returned = 22, .start = 30, .end = 200, .stream = 1, .thread = 1})
      .kernel({.called = 70, .returned = 72, .start = 80, .end = 90});
  EXPECT_EQ(replayed(must_build(job.trace())), (Spans{{10, 60}, {30, 200}, {80, 90}}));
}

// A kernel ends at 200; the thread asks every 10 from 6 on, for 2 each, and returns at `until`.
TraceBuilder polled(std::int64_t until) {
  TraceBuilder job(0, 1, 2);
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 200});
  for (std::int64_t at = 6; at + 2 <= until; at += 10) {
    job.call(HostCallKind::kEventQuery, {.start = at, .end = at + 2});
  }
  return job.kernel({.called = until + 3, .returned = until + 4, .start = until + 13,
                     .end = until + 20, .stream = 1});
}

// The query from 206 to 208 is the first after the end: what follows at 211 moves with the kernel.
TEST(BuilderWaits, a_thread_that_asks_until_a_kernel_has_ended_waits_for_it) {
  const program::Program program = must_build(polled(208).trace());
  EXPECT_EQ(kinds(program)[2], program::StepKind::kWaitOp);
  EXPECT_EQ(replayed(program), (Spans{{10, 200}, {221, 228}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 50), (Spans{{10, 250}, {271, 278}}));
}

// The last query ended at 158, the kernel at 200: the thread asked for something else.
TEST(BuilderWaits, queries_that_end_before_anything_did_are_host_time) {
  const program::Program program = must_build(polled(158).trace());
  EXPECT_EQ(replayed_with_longer(program, 0, 50), (Spans{{10, 250}, {171, 178}}));
}

// Thread 0 launches until 5; thread 1 pauses from the beginning until 40 and launches until 45;
// thread 0 goes on at 150. Pauses of 40 and 145: the first ends 35 after the other thread's call,
// of 150 for which that thread rests, the second when the other thread calls no more.
TraceBuilder hand_overs() {
  TraceBuilder job(0, 2, 1);
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 20})
      .kernel({.called = 40, .returned = 45, .start = 50, .end = 60, .thread = 1})
      .kernel({.called = 150, .returned = 155, .start = 160, .end = 165});
  return job;
}

TEST(BuilderHandOvers, APauseThatEndsAfterAnotherThreadsCallWaitedForIt) {
  const program::Program program = must_build(hand_overs().trace());
  EXPECT_EQ(program.counters.count("program_hand_overs_inferred"), 2U);
  EXPECT_EQ(replayed(program), (Spans{{10, 20}, {50, 60}, {160, 165}}));
}

// The first call takes 10 more: the other thread's call moves by 10, and so does the third.
TEST(BuilderHandOvers, WhoWaitsForAHandOverMovesWithIt) {
  program::Program program = must_build(hand_overs().trace());
  program.threads[0].steps[1].cost = short_us(15);
  EXPECT_EQ(replayed(program), (Spans{{10, 20}, {60, 70}, {170, 175}}));
}

// Thread 0 launches each 1000, thread 1 each 700: after 8 pauses in a row the one's last call is
// 300, 600, 200, 500, 100, 400, 0 and 300 ago, less what calls take, of the 700 to the next one.
TEST(BuilderHandOvers, ThreadsThatCallAtTheirOwnPaceWaitForEachOtherNowhere) {
  TraceBuilder job(0, 2, 2);
  for (int i = 1; i <= 9; ++i) {
    job.iteration(1000 * i - 10, 1000 * i + 990)
        .kernel({.called = 1000 * i, .returned = 1000 * i + 5, .start = 1000 * i + 10,
                 .end = 1000 * i + 60});
  }
  for (int at = 990 + 17; at < 9900; at += 700) {
    job.kernel({.called = at, .returned = at + 5, .start = at + 10, .end = at + 600, .stream = 1,
                .thread = 1});
  }
  EXPECT_EQ(must_build(job.trace()).counters.count("program_hand_overs_inferred"), 0U);
}

// In each of 3 iterations thread 1 launches 40 after thread 0, which rests until the next one.
TEST(BuilderHandOvers, AHandOverOfEachIterationIsFound) {
  TraceBuilder job(0, 2, 1);
  for (const int begin : {0, 1000, 2000}) {
    job.iteration(begin, begin + 1000)
        .kernel({.called = begin, .returned = begin + 5, .start = begin + 10, .end = begin + 20})
        .kernel({.called = begin + 45, .returned = begin + 50, .start = begin + 60,
                 .end = begin + 70, .thread = 1});
  }
  program::Program program = must_build(job.trace());
  program.threads[0].steps[1].cost = short_us(15);
  EXPECT_EQ(replayed(program)[1], (Span{70, 80}));
}

// 29 from the beginning to thread 1's call: its own think time.
TEST(BuilderHandOvers, APauseBelow30IsThinkTime) {
  TraceBuilder job(0, 2, 1);
  job.kernel({.called = 0, .returned = 5, .start = 10, .end = 20})
      .kernel({.called = 29, .returned = 31, .start = 39, .end = 60, .thread = 1});
  program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_hand_overs_inferred"), 0U);
  program.threads[0].steps[1].cost = short_us(500);
  EXPECT_EQ(replayed(program), (Spans{{10, 20}, {39, 60}}));
}

}  // namespace
}  // namespace bubblesim::workload
