// Collectives of two or three ranks, joined or not. Times in us; every recording begins at 0.
#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/sim/workload/program_recorder.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::workload {
namespace {

using traces::CollectiveKind;

/// What a rank does from when to when, by the clock that all begin.
struct RankOf {
  std::int64_t start, end;
  CollectiveAs as{};
};
JobProgram ranks_of(const std::vector<RankOf>& ranks) {
  std::vector<TraceBuilder> made;
  for (const auto& [start, end, as] : ranks) {
    made.push_back(rank_with(static_cast<std::uint32_t>(made.size()), from_to(start, end), as));
  }
  return must_build_job(made);
}

std::uint64_t count(const JobProgram& job, std::string_view counter) {
  return job.counters.count(counter);
}

// The last rank starts at 60, both end at 100: 40 from the meeting.
TEST(JoinCollectives, ACollectiveLastsFromTheLastRanksStart) {
  const JobProgram job = ranks_of({{10, 100}, {60, 100}});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].participants, 2U);
  EXPECT_FALSE(job.collectives[0].point_to_point);
  EXPECT_EQ(microseconds(job.ranks[0].ops[0].duration), 40);
  EXPECT_EQ(microseconds(job.ranks[1].ops[0].duration), 40);
  const auto runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 100}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{60, 100}}));
}

/// What ranks do, which collective each is in, numbered in order of ranks, and what is counted.
struct Meeting {
  std::string_view name;
  std::vector<RankOf> ranks;
  std::vector<int> joined;  ///< by rank; kApart: none
  std::vector<std::pair<std::string_view, std::uint64_t>> counters{};
  bool point_to_point = false;
};
constexpr int kApart = -1;

void expect_meetings(const std::vector<Meeting>& rows) {
  for (const Meeting& row : rows) {
    SCOPED_TRACE(row.name);
    const JobProgram job = ranks_of(row.ranks);
    std::vector<int> joined;
    std::vector<std::uint32_t> numbers;
    for (const program::Program& rank : job.ranks) {
      const std::uint32_t number = rank.ops[0].collective;
      auto place = std::ranges::find(numbers, number);
      if (number != program::kNoIndex && place == numbers.end()) {
        numbers.push_back(number);
        place = numbers.end() - 1;
      }
      joined.push_back(number == program::kNoIndex ? kApart
                                                   : static_cast<int>(place - numbers.begin()));
    }
    EXPECT_EQ(joined, row.joined);
    EXPECT_EQ(job.collectives.size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const JoinedCollective& collective = job.collectives[numbers[i]];
      EXPECT_EQ(collective.participants, std::ranges::count(joined, static_cast<int>(i)));
      EXPECT_EQ(collective.point_to_point, row.point_to_point);
    }
    for (const auto& [name, number] : row.counters) EXPECT_EQ(count(job, name), number) << name;
    const auto runs = run_once(job);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i].spans(), (Spans{{row.ranks[i].start, row.ranks[i].end}})) << i;
    }
  }
}

// All replay as recorded.
TEST(JoinCollectives, RanksThatMayHaveMetDoSoAndNoOthers) {
  const auto send_to = [](std::uint32_t rank) {
    return CollectiveAs{.kind = CollectiveKind::kSend, .peers = {rank}};
  };
  const auto receive_from = [](std::uint32_t rank) {
    return CollectiveAs{.kind = CollectiveKind::kRecv, .peers = {rank}};
  };
  const CollectiveAs first{.sequence = 1, .peers = {0, 1}}, second{.sequence = 1, .peers = {2, 3}};
  const CollectiveAs unnamed{.group = ""};
  const CollectiveAs exchange{.kind = CollectiveKind::kSendRecv, .peers = {0, 1, 2, 3}};
  const CollectiveAs send{.kind = CollectiveKind::kSend, .peers = {0, 1, 2, 3}};
  const CollectiveAs receive{.kind = CollectiveKind::kRecv, .peers = {0, 1, 2, 3}};
  constexpr std::string_view kNotJoined = "program_collectives_not_joined";
  expect_meetings({
      // Rank 1 ends 3 later than rank 0: its span from the meeting is 43.
      {"each rank keeps its own end", {{10, 100}, {60, 103}}, {0, 0}},
      {"groups are not mixed", {{10, 100, {.group = "a"}}, {10, 100, {.group = "b"}}},
       {kApart, kApart}},
      {"kinds are not mixed", {{10, 100}, {10, 100, {.kind = CollectiveKind::kBroadcast}}},
       {kApart, kApart}},
      {"different sequences do not meet", {{10, 100, {.sequence = 7}}, {10, 100, {.sequence = 8}}},
       {kApart, kApart}, {{kNotJoined, 2}}},
      {"a send meets the receive of the other end",
       {{10, 100, send_to(1)}, {60, 100, receive_from(0)}}, {0, 0}, {}, true},
      {"two sends do not meet", {{10, 100, send_to(1)}, {60, 100, send_to(0)}}, {kApart, kApart}},
      // Rank 0 ended at 30, rank 1 started at 90, 60 later: rank 0 did not wait for it.
      {"a rank that ended long before the last start is left out",
       {{10, 30, {.sequence = 1}}, {90, 120, {.sequence = 1}}, {80, 120, {.sequence = 1}}},
       {kApart, 0, 0}, {{"program_collective_ranks_not_waiting", 1}}},
      {"missing ranks of a group are counted on each rank",
       {{10, 100, {.group_size = 3}}, {60, 100, {.group_size = 3}}}, {0, 0},
       {{"program_collectives_missing_ranks", 2}}},
      {"groups of one name are told by their ranks",
       {{60, 100, first}, {10, 100, first}, {10, 100, second}, {60, 100, second}}, {0, 0, 1, 1}},
      // Rank 1's record lacks the ranks of its group; rank 0's has them.
      {"ranks of a group that one rank names are those of all",
       {{60, 100, first}, {10, 100, {.sequence = 1}}}, {0, 0}},
      // Ranks 0 and 1 end together, and ranks 2 and 3, 300 after them.
      {"groups without names are those that end together",
       {{10, 100, unnamed}, {60, 102, unnamed}, {10, 400, unnamed}, {60, 401, unnamed}},
       {0, 0, 1, 1}},
      // Two and two are 10 apart, and the pairs 15, 60 or 30: one group, two, or either.
      {"pairs that are near are one group",
       {{10, 100, unnamed}, {10, 110, unnamed}, {10, 125, unnamed}, {10, 135, unnamed}},
       {0, 0, 0, 0}, {{kNotJoined, 0}}},
      {"pairs that are far from each other are two",
       {{10, 100, unnamed}, {10, 110, unnamed}, {10, 170, unnamed}, {10, 180, unnamed}},
       {0, 0, 1, 1}, {{kNotJoined, 0}}},
      {"ranks that may be one group or two meet nobody",
       {{10, 100, unnamed}, {10, 110, unnamed}, {10, 140, unnamed}, {10, 150, unnamed}},
       {kApart, kApart, kApart, kApart}, {{kNotJoined, 4}}},
      // Of a group of two ranks, three end as one: who is in it cannot be told.
      {"more ranks than a group has never meet",
       {{10, 100, {.group_size = 2}}, {10, 100, {.group_size = 2}}, {10, 100, {.group_size = 2}}},
       {kApart, kApart, kApart}, {{kNotJoined, 3}}},
      {"exchanges without peers meet in pairs",
       {{10, 100, exchange}, {60, 100, exchange}, {60, 900, exchange}, {10, 902, exchange}},
       {0, 0, 1, 1}, {}, true},
      {"sends without peers do not meet", {{10, 100, send}, {60, 100, send}}, {kApart, kApart}},
      // Two send, two receive: one of each ends at 100, the others 40 later.
      {"without peers opposite ends meet",
       {{10, 100, send}, {60, 140, send}, {10, 100, receive}, {60, 140, receive}}, {0, 1, 0, 1}, {},
       true},
      // All four end within 10, as two pairs of one transfer would: who meets whom cannot be told.
      {"transfers that may have met others meet nobody",
       {{10, 100, send}, {60, 108, send}, {10, 101, receive}, {60, 109, receive}},
       {kApart, kApart, kApart, kApart}, {{kNotJoined, 4}}},
      // Rank 1 receives from rank 0, and in the same kernel sends to rank 2.
      {"kernels that share an exchange are one meeting",
       {{10, 100, send_to(1)}, {20, 100, {.kind = CollectiveKind::kSendRecv, .peers = {0, 2}}},
        {60, 100, receive_from(1)}}, {0, 0, 0}}});
}

// The late rank comes 25 later: both end 25 later. Then it comes 20 earlier: both end earlier.
TEST(JoinCollectives, BothRanksFollowTheLateOne) {
  JobProgram job = ranks_of({{10, 100}, {60, 100}});
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
  other.call(traces::HostCallKind::kOther, {0, 1}).kernel({10, 12, 20, 30});
  const JobProgram job = must_build_job({rank_with(0, from_to(10, 100)), other});
  EXPECT_TRUE(job.collectives.empty());
  EXPECT_EQ(job.ranks[0].ops[0].collective, program::kNoIndex);
  EXPECT_EQ(count(job, "program_collectives_not_joined"), 1U);
  EXPECT_EQ(run_once(job)[0].spans(), (Spans{{10, 100}}));
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

// Of a pipeline, whose group is the whole of it: each stage computes 100 and sends for 10.
TraceBuilder stage(std::uint32_t rank, std::uint32_t stages = 4, bool peers_known = true,
                   std::optional<std::uint64_t> number = {}) {
  const std::int64_t ready = 110 * rank;  // the receive ends, if there is one
  const auto with = [&](CollectiveKind kind, std::uint32_t peer) {
    CollectiveAs as{.kind = kind, .sequence = number, .group_size = stages};
    if (peers_known) as.peers = {peer};
    return as;
  };
  TraceBuilder trace(rank);
  trace.call(traces::HostCallKind::kOther, {0, 1});
  if (rank > 0) trace.collective({10, 12, 20, ready}, with(CollectiveKind::kRecv, rank - 1));
  trace.kernel({.called = 13, .returned = 14, .start = std::max<std::int64_t>(ready, 15),
                .end = ready + 100});
  if (rank + 1 == stages) return trace;
  return trace.collective({15, 16, ready + 100, ready + 110},
                          with(CollectiveKind::kSend, rank + 1));
}

// The first stage launches its kernel 40 later, which starts 15 - 13 = 2 after that: at 55, for 85.
TEST(JoinCollectives, ALateStageDelaysThoseBehindIt) {
  JobProgram job = must_build_job({stage(0), stage(1), stage(2), stage(3)});
  ASSERT_EQ(job.collectives.size(), 3U);
  EXPECT_EQ(job.collectives[1].from, 1U);
  EXPECT_EQ(job.collectives[1].to, 2U);
  EXPECT_EQ(count(job, "program_collectives_missing_ranks"), 0U);
  job.ranks[0].threads[0].steps[1].think = short_us(13 + 40);
  const auto runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{55, 140}, {140, 150}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{20, 150}, {150, 250}, {250, 260}}));
  EXPECT_EQ(runs[2].spans(), (Spans{{20, 260}, {260, 360}, {360, 370}}));
  EXPECT_EQ(runs[3].spans(), (Spans{{20, 370}, {370, 470}}));
}

// The last stage's receive comes at 360, 30 after it ended in the recording, lasts its 10 and ends
// at 370: so does the third stage's send. The first two had sent before.
TEST(JoinCollectives, ALateReceiveDelaysItsSendAndNoOther) {
  JobProgram job = must_build_job({stage(0), stage(1), stage(2), stage(3)});
  job.ranks[3].threads[0].steps[1].think = short_us(10 + 340);
  const auto runs = run_once(job);
  EXPECT_EQ(runs[1].spans(), (Spans{{20, 110}, {110, 210}, {210, 220}}));
  EXPECT_EQ(runs[2].spans(), (Spans{{20, 220}, {220, 320}, {320, 370}}));
  EXPECT_EQ(runs[3].spans(), (Spans{{360, 370}, {370, 470}}));
}

// As our recorder writes them, with NCCL's peers and numbers of these, and as it did before, with
// neither.
TEST(JoinCollectives, PipelinesOfOurRecorderMeet) {
  for (const std::uint32_t stages : {2U, 4U, 8U}) {
    for (const bool known : {true, false}) {
      traces::JobTrace trace;
      for (std::uint32_t rank = 0; rank < stages; ++rank) {
        trace.ranks.push_back(
            stage(rank, stages, known, known ? std::optional<std::uint64_t>(0) : std::nullopt)
                .trace());
        for (auto& record : trace.ranks.back().collectives) record.place = known ? rank + 1 : 0;
      }
      const JobProgram job = build_job_program(trace, plain_gpu(), {Window::kWhole}).value();
      EXPECT_EQ(count(job, "program_collectives_not_joined"), 0U);
      ASSERT_EQ(job.collectives.size(), stages - 1);
      for (const JoinedCollective& joined : job.collectives) EXPECT_EQ(joined.to, joined.from + 1);
    }
  }
}

// Rank 0 is 25 late, and so is rank 1, which is in its group.
TEST(JoinCollectives, GroupsOfOneNameAreToldByTheirRanks) {
  const CollectiveAs first{.sequence = 1, .peers = {0, 1}};
  const CollectiveAs second{.sequence = 1, .peers = {2, 3}};
  JobProgram job = ranks_of({{60, 100, first}, {10, 100, first}, {10, 100, second},
                             {60, 100, second}});
  ASSERT_EQ(job.collectives.size(), 2U);
  job.ranks[0].threads[0].steps[1].think = short_us(50 + 25);
  const auto runs = run_once(job);
  EXPECT_EQ(runs[1].spans(), (Spans{{10, 125}}));
  EXPECT_EQ(runs[2].spans(), (Spans{{10, 100}}));
  EXPECT_EQ(runs[3].spans(), (Spans{{60, 100}}));
}

// Tensor groups on stream 0, of ranks 0 and 1, and of 2 and 3, 300 later. On stream 1 all end at
// 900, as gradients of ranks 0 and 2, and of 1 and 3, do, since tensor groups hold those together.
TEST(JoinCollectives, RanksThatAnotherGroupHoldsTogetherMayNotMeet) {
  std::vector<TraceBuilder> ranks;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ranks.emplace_back(rank, 1, 2);
    ranks.back().collective(from_to(10, rank < 2 ? 100 : 400), {.group = ""});
    ranks.back().collective({20, 22, 500, 900, 1},
                            {.group = ""});
  }
  const JobProgram job = must_build_job(ranks);
  EXPECT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(count(job, "program_collectives_not_joined"), 4U);
  EXPECT_EQ(job.ranks[0].ops[0].collective, job.ranks[1].ops[0].collective);
  EXPECT_EQ(job.ranks[0].ops[1].collective, program::kNoIndex);
}

// Ranks 0 and 1 are a group, by most of what they do; what ends at 900 may be of 0 and 2, whose
// other kernels end 300 later, on the same stream.
TEST(JoinCollectives, AKernelThatMayHaveMetAnotherGroupsMeetsNobody) {
  std::vector<TraceBuilder> ranks;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ranks.push_back(rank_with(rank, from_to(10, rank < 2 ? 100 : 400), {.group = ""}));
    ranks.back().collective(from_to(401, rank < 2 ? 500 : 700), {.group = ""});
    ranks.back().collective(from_to(701, 900), {.group = ""});
  }
  const JobProgram job = must_build_job(ranks);
  EXPECT_EQ(job.collectives.size(), 4U);
  EXPECT_EQ(count(job, "program_collectives_not_joined"), 4U);
  EXPECT_EQ(job.ranks[3].ops[2].collective, program::kNoIndex);
}

// By places in the group: rank 6 is its second, rank 4 its first.
TEST(JoinCollectives, PeersMayBePlacesInTheGroup) {
  const auto with_place = [](TraceBuilder builder, std::uint32_t place) {
    traces::RankTrace trace = builder.trace();
    trace.collectives[0].place = place + 1;
    return trace;
  };
  traces::JobTrace trace;
  trace.ranks = {
      with_place(rank_with(4, from_to(10, 100), {.kind = CollectiveKind::kRecv, .peers = {1}}), 0),
      with_place(rank_with(6, from_to(60, 100), {.kind = CollectiveKind::kSend, .peers = {0}}), 1)};
  const JobProgram job = build_job_program(trace, plain_gpu(), {Window::kWhole}).value();
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].from, 6U);
  EXPECT_EQ(job.collectives[0].to, 4U);
}

// The send had ended at 30, in NCCL's buffers, when its receive began at 200. It comes 300 later:
// the receive, which cannot end before it, does so at 320 + its own 10.
TEST(JoinCollectives, ASendThatEndedBeforeItsReceiveIsBuffered) {
  JobProgram job = ranks_of({{20, 30, {.kind = CollectiveKind::kSend, .peers = {1}}},
                             {200, 210, {.kind = CollectiveKind::kRecv, .peers = {0}}}});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_TRUE(job.collectives[0].buffered);
  EXPECT_EQ(count(job, "program_collective_ranks_not_waiting"), 0U);
  EXPECT_EQ(run_once(job)[0].spans(), (Spans{{20, 30}}));
  job.ranks[0].threads[0].steps[1].think = short_us(10 + 300);
  EXPECT_EQ(run_once(job)[1].spans(), (Spans{{200, 330}}));
}

// Ranks 0 and 1 have numbers that do not meet, of 90 and 40; rank 2's 40 have none to meet.
TEST(JoinCollectives, WhatMeetsNobodyIsALossWithItsShareOfTheTime) {
  const JobProgram job = ranks_of({{10, 100, {.sequence = 7, .peers = {0, 1}}},
                                   {60, 100, {.sequence = 8, .peers = {0, 1}}},
                                   {60, 100, {.sequence = 8, .peers = {2, 9}}}});
  EXPECT_EQ(count(job, "program_collectives_of_other_ranks"), 1U);
  for (const auto& [name, entry] : job.counters) {
    if (name != "program_collectives_not_joined") continue;
    EXPECT_EQ(entry.severity, Severity::kLoss);
    EXPECT_EQ(entry.count, 2U);
    EXPECT_NE(entry.help.find("76.5 % of communication time; rank 0: 1 all_reduce; "
                              "rank 1: 1 all_reduce"), std::string::npos) << entry.help;
  }
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
