// A leader and workers over lines that fail in every way that can be made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/sim/sweep/cluster/team.hpp"

namespace bubblesim::sweep {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr auto kPause = std::chrono::milliseconds{2};

TEST(Ranks, EveryRunIsDoneOnceOnAnyNumberOfRanksAndThreads) {
  const auto runs = made_up_runs(100);
  for (const int ranks : {1, 2, 4}) {
    for (const std::size_t threads : {1, 3}) {
      Team team(ranks, threads);
      const TeamOutcome outcome = team.run(runs);
      EXPECT_THAT(outcome.times_done(), SizeIs(100)) << ranks << " ranks";
      EXPECT_THAT(outcome.times_done(), Each(Pair(testing::_, 1)));
      EXPECT_EQ(outcome.failed(), 0U);
      EXPECT_THAT(outcome.ends, Each(Pair(testing::_, ClusterWorkerEnd::kTogether)));
    }
  }
}

// No rank ends a run before each has begun one.
TEST(Ranks, AllOfThemTakePart) {
  Team team(4, 1);
  std::atomic<unsigned> begun{0};
  team.event = [&](int rank, const store::PlannedRun&) {
    begun |= 1U << static_cast<unsigned>(rank);
    while (begun != 15U) std::this_thread::sleep_for(kPause);
    return true;
  };
  const TeamOutcome outcome = team.run(made_up_runs(200));
  EXPECT_EQ(outcome.summary.workers, 3U);
  EXPECT_EQ(outcome.summary.threads, 4U);
  for (const char* host : {"host0", "host1", "host2", "host3"}) {
    EXPECT_THAT(outcome.records, Contains(testing::Field(&store::RunRecord::host, host)));
  }
}

TEST(Ranks, WhatALostWorkerHadIsDoneByOthers) {
  Team team(3, 2);
  std::atomic<int> runs_of_rank_1{0};
  team.event = [&](int rank, const store::PlannedRun&) {
    std::this_thread::sleep_for(kPause);
    return rank != 1 || ++runs_of_rank_1 != 5;
  };
  const TeamOutcome outcome = team.run(made_up_runs(100));
  EXPECT_THAT(outcome.times_done(), SizeIs(100));
  EXPECT_THAT(outcome.times_done(), Each(Pair(testing::_, 1)));
  EXPECT_EQ(outcome.failed(), 0U);
  EXPECT_EQ(outcome.summary.lost, 1U);
  EXPECT_EQ(outcome.summary.parting, Parting::kAlone);
  EXPECT_EQ(outcome.ends.at(2), ClusterWorkerEnd::kAlone);
  EXPECT_THAT(outcome.warnings, Contains(HasSubstr("rank 1 (host1) has ended")));
}

TEST(Ranks, TheLastRankDoesWhatAllOthersLeft) {
  Team team(3, 1);
  team.event = [](int rank, const store::PlannedRun&) {
    std::this_thread::sleep_for(kPause);
    return rank == 0;
  };
  const TeamOutcome outcome = team.run(made_up_runs(30));
  EXPECT_THAT(outcome.times_done(), SizeIs(30));
  EXPECT_EQ(outcome.summary.lost, 2U);
}

// The first run that a worker begins ends every worker that does it: two of three, and is then
// given up. Rank 0 is at a run of its own from before the first to after the second.
TEST(Ranks, ARunThatEndsTwoRanksFailsAndSaysWhy) {
  constexpr std::uint64_t kNone = 1;  // indices are even
  Team team(4, 1);
  std::atomic<bool> leader_is_busy{false};
  std::atomic<std::uint64_t> deadly{kNone};
  std::atomic<int> ended{0};
  team.event = [&](int rank, const store::PlannedRun& run) {
    if (rank == kLeaderRank) {
      leader_is_busy = true;
      while (ended < 2) std::this_thread::sleep_for(kPause);
      return true;
    }
    while (!leader_is_busy) std::this_thread::sleep_for(kPause);
    std::uint64_t none = kNone;
    deadly.compare_exchange_strong(none, run.index);
    if (run.index != deadly) return true;
    ++ended;
    return false;
  };
  const TeamOutcome outcome = team.run(made_up_runs(60));
  EXPECT_THAT(outcome.times_done(), SizeIs(60));
  EXPECT_THAT(outcome.times_done(), Each(Pair(testing::_, 1)));
  EXPECT_EQ(outcome.summary.lost, 2U);
  EXPECT_EQ(outcome.failed(), 1U);
  EXPECT_THAT(
      outcome.records,
      Contains(testing::AllOf(
          testing::Field(&store::RunRecord::status, store::RunStatus::kFailed),
          testing::Field(&store::RunRecord::reason, HasSubstr("was lost twice with the rank")))));
}

// But for the last answer: a worker to which it is lost waits until the silence is too long.
TEST(Ranks, DamagedLostAndDoubledMessagesLoseNothing) {
  for (const Mishap mishap : {Mishap::kDamaged, Mishap::kLost, Mishap::kTwice}) {
    Team team(3, 2, [mishap](int, int, std::uint64_t number) {
      return number % 4 == 2 && number < 8 ? mishap : Mishap::kNone;
    });
    // On a slow machine a worker may say so little that its last answer is one of these.
    team.workers_silence = std::chrono::seconds{15};
    team.event = [](int, const store::PlannedRun&) {
      std::this_thread::sleep_for(kPause);
      return true;
    };
    const TeamOutcome outcome = team.run(made_up_runs(100));
    EXPECT_THAT(outcome.times_done(), SizeIs(100)) << static_cast<int>(mishap);
    EXPECT_THAT(outcome.times_done(), Each(Pair(testing::_, 1))) << static_cast<int>(mishap);
    EXPECT_EQ(outcome.summary.lost, 0U);
  }
}

TEST(Ranks, ASlowLineOnlyTakesLonger) {
  Team team(3, 1, {}, std::chrono::milliseconds{20});
  const TeamOutcome outcome = team.run(made_up_runs(50));
  EXPECT_THAT(outcome.times_done(), SizeIs(50));
  EXPECT_THAT(outcome.times_done(), Each(Pair(testing::_, 1)));
}

TEST(Ranks, ASilentRankIsLostAndMayComeBack) {
  Team team(2, 1);
  team.silence = std::chrono::milliseconds{1500};
  std::atomic<bool> back{false};
  std::atomic<int> of_rank_1{0};
  team.event = [&](int rank, const store::PlannedRun&) {
    if (rank == 1 && ++of_rank_1 == 2) {
      team.board.hold(1);
      std::this_thread::sleep_for(std::chrono::seconds{3});
      team.board.release(1);
      back = true;
    }
    // The sweep must not be over before the rank is back.
    while (rank == 0 && of_rank_1 > 1 && !back) std::this_thread::sleep_for(kPause);
    std::this_thread::sleep_for(kPause);
    return true;
  };
  const TeamOutcome outcome = team.run(made_up_runs(300));
  EXPECT_THAT(outcome.times_done(), SizeIs(300));
  EXPECT_THAT(outcome.times_done(), Each(Pair(testing::_, 1)));
  EXPECT_THAT(outcome.warnings, Contains(HasSubstr("has said nothing for 1 s")));
}

TEST(Ranks, AnotherVersionOfTheProgramIsGivenNothing) {
  Team team(3, 1);
  team.versions[1] = "2";
  const TeamOutcome outcome = team.run(made_up_runs(50));
  EXPECT_THAT(outcome.times_done(), SizeIs(50));
  EXPECT_EQ(outcome.summary.refused, 1U);
  EXPECT_THAT(outcome.records, Each(testing::Field(&store::RunRecord::host, testing::Ne("host1"))));
  EXPECT_THAT(outcome.warnings,
              Contains("rank 1 (host1) is given no runs: runs version 2 of the program, not 1"));
}

TEST(Ranks, AWorkerWithoutTheFilesIsGivenNoMoreAndOthersDoItsRuns) {
  Team team(3, 1);
  team.obstacle = [](int rank, const store::PlannedRun&) {
    return rank == 2 ? std::string("there is no file x") : std::string();
  };
  team.event = [](int, const store::PlannedRun&) {
    std::this_thread::sleep_for(kPause);
    return true;
  };
  const TeamOutcome outcome = team.run(made_up_runs(100));
  EXPECT_THAT(outcome.times_done(), SizeIs(100));
  EXPECT_EQ(outcome.failed(), 0U);
  EXPECT_THAT(outcome.records, Each(testing::Field(&store::RunRecord::host, testing::Ne("host2"))));
  EXPECT_THAT(outcome.warnings,
              testing::ElementsAre("rank 2 (host2) is given no runs: there is no file x"));
}

TEST(Ranks, AStopEndsWhatRunsAndBeginsNothing) {
  Team team(3, 1);
  std::atomic<int> begun{0};
  team.event = [&](int, const store::PlannedRun&) {
    ++begun;
    std::this_thread::sleep_for(kPause);
    return true;
  };
  team.stopped = [&] { return begun > 10; };
  const TeamOutcome outcome = team.run(made_up_runs(100'000));
  EXPECT_LT(outcome.records.size(), 100'000U);
  EXPECT_EQ(outcome.records.size(), static_cast<std::size_t>(begun));
  EXPECT_THAT(outcome.ends, Each(Pair(testing::_, ClusterWorkerEnd::kTogether)));
}

TEST(Ranks, WithoutRunsWorkersAreLetGo) {
  Team team(4, 2);
  const TeamOutcome outcome = team.run({});
  EXPECT_THAT(outcome.records, SizeIs(0));
  EXPECT_THAT(outcome.ends, SizeIs(3));
}

TEST(Ranks, AWorkerThatHearsNothingOfTheLeaderEnds) {
  Switchboard board(2);
  Line line(board, 1);
  board.kill(kLeaderRank);
  WorkerPorts ports;
  ports.stopped = [] { return false; };
  EXPECT_EQ(work_for_leader(line, {}, ports), ClusterWorkerEnd::kLeaderLost);
}

}  // namespace
}  // namespace bubblesim::sweep
