// What synchronising calls waited for. Each test replays the recording, then stretches an
// operation: the calls that waited for it return later by as much. Times in us.
#include <gtest/gtest.h>

#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using program::StepKind;
using traces::HostCallKind;

std::vector<StepKind> kinds(const program::Program& program, std::size_t thread = 0) {
  std::vector<StepKind> result;
  for (const program::Step& step : program.threads[thread].steps) result.push_back(step.kind);
  return result;
}

// A kernel ends at 200; the thread asks every 10 from 6 on, for 2 each, and returns at `until`.
TraceBuilder polled(std::int64_t until) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 5, 10, 200});
  for (std::int64_t at = 6; at + 2 <= until; at += 10) {
    job.call(HostCallKind::kEventQuery, {at, at + 2});
  }
  return job.kernel({until + 3, until + 4, until + 13, until + 20, 1});
}

TEST(BuilderWaits, ReplaysMoveWithWhatTheyWaitFor) {
  expect_replays({
    // The call returned at 5, the copy ended at 50: the next launch does not care.
    {"AnAsynchronousCopyReturnsAtOnce",
     TraceBuilder(0, 1, 2).copy({0, 5, 10, 50}).kernel({65, 67, 75, 80, 1}),
     {}, {{0, 200, {{10, 250}, {75, 80}}}}, {}, {{1, StepKind::kLaunch}}},
    // The kernel ends at 100, the call returns at 105. With 20 more: 120, 125, 130, 140.
    {"AStreamSynchronisationReturnsALagAfterTheStreamsEnd",
     TraceBuilder().kernel({0, 5, 10, 100}).stream_sync(6, 105).kernel({110, 112, 120, 130}),
     {{10, 100}, {120, 130}}, {{0, 20, {{10, 120}, {140, 150}}}}, {{"program_waits_inferred", 0}},
     {{2, StepKind::kWaitStream}}},
    // Stream 0 ends at 60, stream 1 at 100, the call returns at 105: it waited for stream 1.
    {"AStreamThatWasNotRecordedIsTheOneThatEndedLastWithinTheCall",
     TraceBuilder(0, 1, 3).kernel({0, 1, 10, 60}).kernel({2, 3, 12, 100, 1})
         .call(HostCallKind::kStreamSync, {6, 105}).kernel({110, 112, 120, 130, 2}),
     {{10, 60}, {12, 100}, {120, 130}},
     {{0, 200, {{10, 260}, {12, 100}, {120, 130}}}, {1, 20, {{10, 60}, {12, 120}, {140, 150}}}},
     {{"program_waits_inferred", 1}}},
    // The kernel ended at 20; the call at 50 returned after 3 of its own. A kernel that ends at 120
    // makes it wait, and return the usual 3 later: 123, then 7 and 10 to the next start.
    {"ACallThatFoundNothingToWaitForStillWaitsIfTheDeviceIsLate",
     TraceBuilder().kernel({0, 5, 10, 20}).stream_sync(50, 53).kernel({60, 62, 70, 80}),
     {{10, 20}, {70, 80}}, {{0, 100, {{10, 120}, {140, 150}}}}},
    // Nothing ran on stream 1, which the call waited for.
    {"AWaitForAStreamWithoutOperationsIsCounted",
     TraceBuilder(0, 1, 2).kernel({0, 5, 10, 100}).stream_sync(12, 105, 1),
     {}, {}, {{"program_waits_for_empty_streams", 1}}, {{2, StepKind::kPause}}},
    // Streams end at 60 and 100, the call returns at 105: 5 after the last.
    {"ADeviceSynchronisationWaitsForEveryStream",
     TraceBuilder(0, 1, 2).kernel({0, 1, 10, 60}).kernel({2, 3, 12, 100, 1})
         .call(HostCallKind::kDeviceSync, {6, 105}).kernel({110, 112, 120, 130, 1}),
     {{10, 60}, {12, 100}, {120, 130}}, {{0, 60, {{10, 120}, {12, 100}, {140, 150}}}}, {},
     {{3, StepKind::kWaitDevice}}},
    // A ends at 60, the call returns at 63; B is still running. With A 10 longer: 73, 80, 90.
    {"AnEventSynchronisationWaitsForTheOperationThatEndedLastWithinIt",
     TraceBuilder(0, 1, 3).kernel({0, 1, 10, 60}).kernel({2, 3, 12, 100, 1})
         .call(HostCallKind::kEventSync, {6, 63}).kernel({70, 72, 80, 85, 2}),
     {{10, 60}, {12, 100}, {80, 85}},
     {{0, 10, {{10, 70}, {12, 100}, {90, 95}}}, {1, 99, {{10, 60}, {12, 199}, {80, 85}}}},
     {{"program_waits_inferred", 1}}, {{3, StepKind::kWaitOp}}},
    // B on stream 1 ends last within the call, but the event was recorded on stream 0 after A
    // alone: A ends at 40, the call returns at 63, a lag of 23. With A 10 longer all moves; with B
    // longer not.
    {"AnEventSynchronisationWaitsForWhatItsEventStandsFor",
     TraceBuilder(0, 1, 3).kernel({0, 1, 10, 40}).record_event(2, 3, 0, 7).kernel({4, 5, 12, 60, 1})
         .call(HostCallKind::kEventSync, {.start = 6, .end = 63, .event = 7})
         .kernel({70, 72, 80, 85, 2}),
     {{10, 40}, {12, 60}, {80, 85}},
     {{0, 10, {{10, 50}, {12, 60}, {90, 95}}}, {1, 20, {{10, 40}, {12, 80}, {80, 85}}}},
     {{"program_waits_inferred", 0}}},
    // As above, but the event is recorded on stream 2, which waits for A and has launched nothing
    // since.
    {"AnEventRecordedBehindAWaitStandsForWhatTheWaitIsFor",
     TraceBuilder(0, 1, 4).kernel({0, 1, 10, 40}).record_event(2, 3, 0, 7).await_event(3, 4, 2, 7)
         .record_event(4, 5, 2, 8)
         .call(HostCallKind::kEventSync, {.start = 6, .end = 63, .event = 8})
         .kernel({70, 72, 80, 85, 3}),
     {{10, 40}, {80, 85}}, {{0, 10, {{10, 50}, {90, 95}}}}},
    // Stream 1 waits for A and has no operation of its own: who synchronises with it waits for A.
    {"AStreamSynchronisationWaitsForWhatTheStreamWaitsFor",
     TraceBuilder(0, 1, 3).kernel({0, 1, 10, 40}).record_event(2, 3, 0, 7).await_event(3, 4, 1, 7)
         .stream_sync(6, 45, 1).kernel({50, 51, 60, 70, 2}),
     {{10, 40}, {60, 70}}, {{0, 20, {{10, 60}, {80, 90}}}},
     {{"program_waits_for_empty_streams", 0}}},
    // The copy ends at 50, its call returns at 60, the next launch is 5 later. With a copy of 60:
    // 70, 80, 85, and 10 of launch lag: 95.
    {"ABlockingCopyReturnsALagAfterItsEnd",
     TraceBuilder().copy({0, 60, 10, 50}).kernel({65, 67, 75, 80}),
     {{10, 50}, {75, 80}}, {{0, 20, {{10, 70}, {95, 100}}}}, {},
     {{1, StepKind::kLaunchAndWait}, {2, StepKind::kLaunch}, {3, StepKind::kEnd}}},
    // The call returns at 200 with the last part of the copy on its way, which ends at 216.
    {"ACopyOfPageableMemoryBlocksThoughItEndsAfterItsCall",
     TraceBuilder(0, 1, 2).copy({0, 200, 100, 216}).kernel({220, 222, 230, 240, 1}),
     {{100, 216}, {230, 240}}, {{0, -100, {{100, 116}, {130, 140}}}}, {},
     {{1, StepKind::kLaunchAndWait}}},
    // 20 within the call are too short for staging: an asynchronous copy that began at once.
    {"AShortCopyThatOutlastsItsCallIsAsynchronous",
     TraceBuilder(0, 1, 2).copy({0, 30, 10, 40}).kernel({50, 52, 60, 70, 1}),
     {}, {}, {}, {{1, StepKind::kLaunch}}},
    {"AMemsetNeverWaits", TraceBuilder().memset({0, 60, 10, 50}), {}, {}, {},
     {{1, StepKind::kLaunch}}},
    // It returned at 15, the stream's kernel ended at 100: whatever the call did, it did not wait.
    {"ACallThatReturnedBeforeItsStreamEndedIsHostTimeOnly",
     TraceBuilder().kernel({0, 5, 10, 100}).stream_sync(12, 15), {}, {}, {},
     {{2, StepKind::kPause}}},
    {"AnEventSynchronisationWithinWhichNothingEndedIsHostTimeOnly",
     TraceBuilder().kernel({0, 1, 10, 60}).call(HostCallKind::kEventSync, {70, 73}), {}, {}, {},
     {{2, StepKind::kPause}}},
    {"AFreeWaitsIfDeviceWorkEndedWithinIt",
     TraceBuilder().kernel({0, 5, 10, 100}).call(HostCallKind::kFree, {12, 105}), {}, {}, {},
     {{2, StepKind::kWaitDevice}}},
    {"AFreeBehindTheDevicesWorkDoesNotWait",
     TraceBuilder().kernel({0, 5, 10, 100}).call(HostCallKind::kFree, {110, 115}), {}, {}, {},
     {{2, StepKind::kPause}}},
    // The kernel ends 20 into a call of 1000: 977 and the usual 3 are the allocation's own. With a
    // kernel of 100 more it ends 100 later; a kernel that ends at 12 is not waited for: a call of 2
    // at 20, and 987 less the 3 of noticing.
    {"WhatAnAllocationDoesItselfStaysWhateverItWaitedFor",
     TraceBuilder().kernel({0, 5, 10, 40}).call(HostCallKind::kAlloc, {20, 1020})
         .kernel({1030, 1032, 1040, 1050}),
     {{10, 40}, {1040, 1050}},
     {{0, 100, {{10, 140}, {1140, 1150}}}, {0, -28, {{10, 12}, {1019, 1029}}}}},
    // Stream 2 waits for A on stream 0, which ends at 30, and for B on stream 1, which ends at 50,
    // then an event is recorded there. The host waits for that until 55, 5 after B, and launches at
    // 60 what runs from 70. With A 40 longer it ends at 70, the call at 75: 15 to the next
    // operation, 90. With B 40 longer it ends at 90, the call at 95: 110.
    {"AnEventRecordedBehindTwoWaitsStandsForBoth",
     TraceBuilder(0, 1, 4).kernel({0, 1, 10, 30}).record_event(1, 2, 0, 7)
         .kernel({2, 3, 12, 50, 1}).record_event(3, 4, 1, 8).await_event(4, 5, 2, 7)
         .await_event(5, 6, 2, 8).record_event(6, 7, 2, 9)
         .call(HostCallKind::kEventSync, {.start = 7, .end = 55, .event = 9})
         .kernel({60, 61, 70, 80, 3}),
     {{10, 30}, {12, 50}, {70, 80}},
     {{0, 40, {{10, 70}, {12, 50}, {90, 100}}}, {1, 40, {{10, 30}, {12, 90}, {110, 120}}}}, {},
     {{2, StepKind::kLaunch}, {3, StepKind::kWaitOp}, {4, StepKind::kWaitOp},
      {5, StepKind::kLaunch}}},
    // Thread 0 synchronises from 6 to 65 with what it had launched, which ended at 60. Thread 1
    // launched at 20 what ran from 30 to 200: the synchronisation did not wait for that.
    {"ADeviceSynchronisationDoesNotWaitForWhatIsLaunchedLater",
     TraceBuilder(0, 2, 2).kernel({0, 1, 10, 60}).call(HostCallKind::kDeviceSync, {6, 65})
         .kernel({20, 22, 30, 200, 1, 1}).kernel({70, 72, 80, 90}),
     {{10, 60}, {30, 200}, {80, 90}}},
    // The query from 206 to 208 is the first after the end: what follows at 211 moves with the
    // kernel.
    {"AThreadThatAsksUntilAKernelHasEndedWaitsForIt", polled(208), {{10, 200}, {221, 228}},
     {{0, 50, {{10, 250}, {271, 278}}}}, {}, {{2, StepKind::kWaitOp}}},
    // The last query ended at 158, the kernel at 200: the thread asked for something else.
    {"QueriesThatEndBeforeAnythingDidAreHostTime", polled(158), {},
     {{0, 50, {{10, 250}, {171, 178}}}}}});
}

// An asynchronous copy whose call was 60 long, so that it ended within it by chance: names say
// which one waits.
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
    EXPECT_EQ(kinds(must_build(job.trace()))[1], at.blocks ? StepKind::kLaunchAndWait
                                                           : StepKind::kLaunch)
        << at.copy;
  }
}

// The copy ends at 53 by the device's clock, its call returns at 50: the host's clock is 3 behind.
// By the host's clock the launch is then at 3, the copy from 13, the kernel from 78.
TEST(BuilderWaits, ACopyThatBlocksTellsHowFarTheClocksAreApart) {
  TraceBuilder job;
  job.copy({.called = 0, .returned = 50, .start = 13, .end = 53, .name = "CopyDeviceToHost",
            .call = "hipMemcpyWithStream", .direction = traces::CopyDirection::kDeviceToHost})
      .kernel({65, 67, 78, 83});
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(kinds(program)[1], StepKind::kLaunchAndWait);
  EXPECT_EQ(replayed_with_longer(program, 0, 20)[1].start, replayed(program)[1].start + 20);
}

// Both waits return 3 before the only kernel that is pending ends: the clocks are 3 apart. A wait
// that returns 30 before it was for something else, and no clock is judged by it.
TEST(BuilderWaits, AnEventWithoutANameMayStandForTheOnlyWorkThatIsPending) {
  const auto moved_by_20 = [](std::int64_t early) {
    TraceBuilder job;
    job.kernel({0, 1, 10, 60}).call(HostCallKind::kEventSync, {6, 60 - early})
        .kernel({70, 72, 80, 130}).call(HostCallKind::kEventSync, {75, 127})
        .kernel({140, 142, 150, 160});
    const program::Program program = must_build(job.trace());
    return replayed_with_longer(program, 0, 20)[1].start - replayed(program)[1].start;
  };
  EXPECT_EQ(moved_by_20(3), 20);
  EXPECT_EQ(moved_by_20(30), 0);
}

// The kernel ends at 100, the allocation returns at 130; one in stream order waits for nothing.
TEST(BuilderWaits, AnAllocationThatReturnsWhenTheDeviceIsDoneWaitedForIt) {
  const auto with = [](std::string_view name) {
    TraceBuilder job;
    job.kernel({0, 5, 10, 100}).call(HostCallKind::kAlloc, {6, 130}).kernel({135, 137, 145, 150});
    traces::RankTrace trace = job.trace();
    trace.host_calls[1].name = trace.names.intern(name);
    return must_build(trace);
  };
  EXPECT_EQ(replayed_with_longer(with("cudaMalloc"), 0, 20), (Spans{{10, 120}, {165, 170}}));
  EXPECT_EQ(replayed_with_longer(with("cudaMallocAsync"), 0, 20), (Spans{{10, 120}, {145, 150}}));
}

// The host launches A on stream 1, which ends at 40, then waits until 45 with `wait`, then launches
// at 50 on stream 2, which does not block, what runs from 60. Stream 0 has no operation.
program::Program behind_default_stream(traces::StreamKind one, HostCallKind wait) {
  TraceBuilder job(0, 1, 3);
  job.stream_kind(0, traces::StreamKind::kLegacyDefault).stream_kind(1, one)
      .stream_kind(2, traces::StreamKind::kNonBlocking).kernel({0, 1, 10, 40, 1})
      .record_event(2, 3, 0, 7)
      .call(wait, {.start = 6, .end = 45, .stream = 0, .event = 7}).kernel({50, 51, 60, 70, 2});
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
  job.kernel({0, 100, 110, 120}).queue_full(5, 95);
  const program::Program program = must_build(job.trace());
  EXPECT_EQ(microseconds(program.threads[0].steps[1].cost), 10);
}

// Thread 0 launches until 5; thread 1 pauses from the beginning until 40 and launches until 45;
// thread 0 goes on at 150. Pauses of 40 and 145: the first ends 35 after the other thread's call,
// of 150 for which that thread rests, the second when the other thread calls no more.
TraceBuilder hand_overs() {
  TraceBuilder job(0, 2, 1);
  job.kernel({0, 5, 10, 20}).kernel({40, 45, 50, 60, 0, 1}).kernel({150, 155, 160, 165});
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
        .kernel({1000 * i, 1000 * i + 5, 1000 * i + 10, 1000 * i + 60});
  }
  for (int at = 990 + 17; at < 9900; at += 700) job.kernel({at, at + 5, at + 10, at + 600, 1, 1});
  EXPECT_EQ(must_build(job.trace()).counters.count("program_hand_overs_inferred"), 0U);
}

// In each of 3 iterations thread 1 launches 40 after thread 0, which rests until the next one.
TEST(BuilderHandOvers, AHandOverOfEachIterationIsFound) {
  TraceBuilder job(0, 2, 1);
  for (const int begin : {0, 1000, 2000}) {
    job.iteration(begin, begin + 1000).kernel({begin, begin + 5, begin + 10, begin + 20})
        .kernel({begin + 45, begin + 50, begin + 60, begin + 70, 0, 1});
  }
  program::Program program = must_build(job.trace());
  program.threads[0].steps[1].cost = short_us(15);
  EXPECT_EQ(replayed(program)[1], (Span{70, 80}));
}

// 29 from the beginning to thread 1's call: its own think time.
TEST(BuilderHandOvers, APauseBelow30IsThinkTime) {
  TraceBuilder job(0, 2, 1);
  job.kernel({0, 5, 10, 20}).kernel({29, 31, 39, 60, 0, 1});
  program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_hand_overs_inferred"), 0U);
  program.threads[0].steps[1].cost = short_us(500);
  EXPECT_EQ(replayed(program), (Spans{{10, 20}, {39, 60}}));
}

}  // namespace
}  // namespace bubblesim::workload
