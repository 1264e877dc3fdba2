// Collectives of two or three ranks, joined or not. Times in us; every recording begins at 0.
#include <gtest/gtest.h>

#include "tests/unit/sim/workload/program_recorder.hpp"
#include "traces/inferred_layout.hpp"

namespace bubblesim::workload {
namespace {

using traces::CollectiveKind;

std::uint64_t count(const JobProgram& job, std::string_view counter) {
  return job.counters.count(counter);
}

// The last rank starts at 60, both end at 100: 40 from the meeting.
TEST(JoinCollectives, ACollectiveLastsFromTheLastRanksStart) {
  const JobProgram job = must_build_job({rank_with(0, from_to(10, 100)),
                                         rank_with(1, from_to(60, 100))});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].participants, 2U);
  EXPECT_FALSE(job.collectives[0].point_to_point);
  EXPECT_EQ(microseconds(job.ranks[0].ops[0].duration), 40);
  EXPECT_EQ(microseconds(job.ranks[1].ops[0].duration), 40);
  const auto runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 100}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{60, 100}}));
}

// Rank 1 ends 3 later than rank 0: its span from the meeting is 43.
TEST(JoinCollectives, EachRankKeepsItsOwnEnd) {
  const auto runs = run_once(must_build_job({rank_with(0, from_to(10, 100)),
                                             rank_with(1, from_to(60, 103))}));
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 100}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{60, 103}}));
}

// The late rank comes 25 later: both end 25 later. Then it comes 20 earlier: both end earlier.
TEST(JoinCollectives, BothRanksFollowTheLateOne) {
  JobProgram job = must_build_job({rank_with(0, from_to(10, 100)),
                                   rank_with(1, from_to(60, 100))});
  job.ranks[1].threads[0].steps[1].think = short_us(75);
  auto runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 125}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{85, 125}}));
  job.ranks[1].threads[0].steps[1].think = short_us(30);
  runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 80}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{40, 80}}));
}

TEST(JoinCollectives, ACollectiveOfOneRankKeepsItsRecordedTime) {
  TraceBuilder other(1);
  other.call(traces::HostCallKind::kOther, {.start = 0, .end = 1})
      .kernel({.called = 10, .returned = 12, .start = 20, .end = 30});
  const JobProgram job = must_build_job({rank_with(0, from_to(10, 100)), other});
  EXPECT_TRUE(job.collectives.empty());
  EXPECT_EQ(job.ranks[0].ops[0].collective, program::kNoIndex);
  EXPECT_EQ(count(job, "program_collectives_not_joined"), 1U);
  EXPECT_EQ(run_once(job)[0].spans(), (Spans{{10, 100}}));
}

TEST(JoinCollectives, GroupsAndKindsAreNotMixed) {
  EXPECT_TRUE(must_build_job({rank_with(0, from_to(10, 100), {.group = "a"}),
                              rank_with(1, from_to(10, 100), {.group = "b"})})
                  .collectives.empty());
  EXPECT_TRUE(must_build_job({rank_with(0, from_to(10, 100)),
                              rank_with(1, from_to(10, 100), {.kind = CollectiveKind::kBroadcast})})
                  .collectives.empty());
}

// Sequences 7 and 8 on both ranks: 7 starts last at 60, 8 at 130.
TEST(JoinCollectives, RecordedSequencesSayWhichOnesMeet) {
  TraceBuilder first = rank_with(0, from_to(10, 100), {.sequence = 7});
  first.collective(from_to(130, 150), {.sequence = 8});
  TraceBuilder second = rank_with(1, from_to(60, 100), {.sequence = 7});
  second.collective(from_to(120, 150), {.sequence = 8});
  const JobProgram job = must_build_job({first, second});
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.ranks[0].ops[0].collective, job.ranks[1].ops[0].collective);
  EXPECT_EQ(microseconds(job.ranks[0].ops[1].duration), 20);
  EXPECT_EQ(run_once(job)[1].spans(), (Spans{{60, 100}, {120, 150}}));
}

TEST(JoinCollectives, DifferentSequencesDoNotMeet) {
  const JobProgram job = must_build_job({rank_with(0, from_to(10, 100), {.sequence = 7}),
                                         rank_with(1, from_to(10, 100), {.sequence = 8})});
  EXPECT_TRUE(job.collectives.empty());
  EXPECT_EQ(count(job, "program_collectives_not_joined"), 2U);
}

// Rank 0 lacks the first of rank 1's two collectives; its only one, which ends at 1100, is the
// second, though it is first in order.
TEST(JoinCollectives, WithoutSequencesTheEndsSayWhichOnesMeet) {
  TraceBuilder second = rank_with(1, from_to(20, 50));
  second.collective(from_to(1060, 1100), {});
  const JobProgram job = must_build_job({rank_with(0, from_to(1010, 1100)), second});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.ranks[1].ops[0].collective, program::kNoIndex);
  EXPECT_EQ(job.ranks[1].ops[1].collective, 0U);
  EXPECT_EQ(run_once(job)[0].spans(), (Spans{{1010, 1100}}));
}

TEST(JoinCollectives, ASendMeetsTheReceiveOfTheOtherEnd) {
  const JobProgram job = must_build_job(
      {rank_with(0, from_to(10, 100), {.kind = CollectiveKind::kSend, .peers = {1}}),
       rank_with(1, from_to(60, 100), {.kind = CollectiveKind::kRecv, .peers = {0}})});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_TRUE(job.collectives[0].point_to_point);
  EXPECT_EQ(run_once(job)[0].spans(), (Spans{{10, 100}}));
}

// The send lasts 5, the receive 10 after it: laid out, neither is a recording of waiting. A receive
// that comes 300 later, long after the send, still meets it.
TEST(JoinCollectives, ASendThatWasLaidOutDoesNotWaitForItsReceive) {
  const auto laid_out = [](std::uint32_t rank, const Launched& at, const CollectiveAs& as) {
    traces::RankTrace trace = rank_with(rank, at, as).trace();
    trace.counters.add(traces::kLayoutInferred);
    return trace;
  };
  for (const std::int64_t late : {0, 300}) {
    traces::JobTrace trace;
    trace.ranks = {laid_out(0, from_to(20, 25),
                            {.kind = CollectiveKind::kSend, .sequence = 0, .peers = {1}}),
                   laid_out(1, from_to(20 + late, 30 + late),
                            {.kind = CollectiveKind::kRecv, .sequence = 0, .peers = {0}})};
    JobProgram job = build_job_program(trace, plain_gpu(), {Window::kWhole}).value();
    ASSERT_EQ(job.collectives.size(), 1U);
    EXPECT_TRUE(job.collectives[0].buffered);
    EXPECT_EQ(count(job, "program_collective_ranks_not_waiting"), 0U);
    auto runs = run_once(job);
    EXPECT_EQ(runs[0].spans(), (Spans{{20, 25}}));
    EXPECT_EQ(runs[1].spans(), (Spans{{20 + late, 30 + late}}));
    job.ranks[0].threads[0].steps[1].think = short_us(510);  // the send comes 500 later
    runs = run_once(job);
    EXPECT_EQ(runs[0].spans(), (Spans{{520, 525}}));
    EXPECT_EQ(runs[1].spans(), (Spans{{20 + late, 530}}));
  }
}

TEST(JoinCollectives, TwoSendsDoNotMeet) {
  EXPECT_TRUE(must_build_job(
                  {rank_with(0, from_to(10, 100), {.kind = CollectiveKind::kSend, .peers = {1}}),
                   rank_with(1, from_to(60, 100), {.kind = CollectiveKind::kSend, .peers = {0}})})
                  .collectives.empty());
}

// Rank 0 ended at 30, rank 1 started at 90, 60 later: rank 0 did not wait for it. Ranks 1 and 2
// are left.
TEST(JoinCollectives, ARankThatEndedLongBeforeTheLastStartIsLeftOut) {
  const JobProgram job = must_build_job({rank_with(0, from_to(10, 30), {.sequence = 1}),
                                         rank_with(1, from_to(90, 120), {.sequence = 1}),
                                         rank_with(2, from_to(80, 120), {.sequence = 1})});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].participants, 2U);
  EXPECT_EQ(count(job, "program_collective_ranks_not_waiting"), 1U);
  const auto runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 30}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{90, 120}}));
  EXPECT_EQ(runs[2].spans(), (Spans{{80, 120}}));
}

TEST(JoinCollectives, MissingRanksOfAGroupAreCountedOnEachRank) {
  const JobProgram job = must_build_job({rank_with(0, from_to(10, 100), {.group_size = 3}),
                                         rank_with(1, from_to(60, 100), {.group_size = 3})});
  EXPECT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(count(job, "program_collectives_missing_ranks"), 2U);
}

// Rank 1's recording begins 50 after rank 0's: so does its replay, and nothing moves.
TEST(JoinCollectives, RanksThatBeginAtDifferentTimesKeepTheirDistance) {
  TraceBuilder late(1);
  late.collective(from_to(60, 100), {});
  const auto runs = run_once(must_build_job({rank_with(0, from_to(10, 100)), late}));
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 100}}));
}

}  // namespace
}  // namespace bubblesim::workload
