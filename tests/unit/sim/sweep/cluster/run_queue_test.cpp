#include "sim/sweep/cluster/run_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bubblesim::sweep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<store::PlannedRun> runs_at(const std::vector<std::uint64_t>& indices) {
  std::vector<store::PlannedRun> runs;
  for (const std::uint64_t index : indices) runs.emplace_back().index = index;
  return runs;
}

std::vector<std::uint64_t> indices(const std::vector<const store::PlannedRun*>& runs) {
  std::vector<std::uint64_t> out;
  for (const store::PlannedRun* run : runs) out.push_back(run->index);
  return out;
}

TEST(RunQueue, GivesRunsInTheOrderOfThePlan) {
  const auto runs = runs_at({3, 5, 8, 9});
  RunQueue queue(runs);
  EXPECT_THAT(indices(queue.give(1, 2, 0)), ElementsAre(3, 5));
  EXPECT_EQ(queue.wait_for_run()->index, 8U);
  EXPECT_EQ(queue.held(), 3U);
  EXPECT_EQ(queue.held_by(1), 2U);
}

// Two threads in all and 4 runs: spare ones are given while more than two wait.
TEST(RunQueue, NearTheEndNoRankHoardsRuns) {
  const auto runs = runs_at({0, 1, 2, 3});
  RunQueue queue(runs);
  queue.set_threads(kLeaderRank, 1);
  queue.set_threads(1, 1);
  EXPECT_THAT(indices(queue.give(1, 1, 5)), ElementsAre(0, 1));
}

TEST(RunQueue, ARunIsDoneOnceAndAnUnknownOneNever) {
  const auto runs = runs_at({4});
  RunQueue queue(runs);
  EXPECT_EQ(queue.finish(7), nullptr);
  EXPECT_FALSE(queue.all_done());
  EXPECT_EQ(queue.finish(4), &runs[0]);
  EXPECT_EQ(queue.finish(4), nullptr);
  EXPECT_TRUE(queue.all_done());
  EXPECT_EQ(queue.wait_for_run(), nullptr);
}

TEST(RunQueue, WhatAWorkerWasGivenAndHasNotWaitsAgain) {
  const auto runs = runs_at({0, 1, 2});
  RunQueue queue(runs);
  ASSERT_THAT(indices(queue.give(1, 3, 0)), ElementsAre(0, 1, 2));
  EXPECT_THAT(queue.has_only(1, {1}), IsEmpty());
  EXPECT_EQ(queue.held_by(1), 1U);
  EXPECT_THAT(indices(queue.give(2, 3, 0)), ElementsAre(0, 2));
}

TEST(RunQueue, ARunThatNeverComesBackIsGivenUp) {
  const auto runs = runs_at({0});
  RunQueue queue(runs);
  for (std::uint32_t i = 1; i < kMostReturns; ++i) {
    ASSERT_THAT(indices(queue.give(1, 1, 0)), ElementsAre(0));
    ASSERT_THAT(queue.has_only(1, {}), IsEmpty());
  }
  ASSERT_THAT(indices(queue.give(1, 1, 0)), ElementsAre(0));
  EXPECT_THAT(indices(queue.has_only(1, {})), ElementsAre(0));
  EXPECT_TRUE(queue.all_done());
}

// Rank 1 has one thread: it was at run 0, while runs 1 and 2 waited there.
TEST(RunQueue, OnlyWhatALostRankWasAtIsSuspected) {
  const auto runs = runs_at({0, 1, 2});
  RunQueue queue(runs);
  queue.set_threads(1, 1);
  queue.set_threads(2, 1);
  ASSERT_THAT(indices(queue.give(1, 3, 0)), ElementsAre(0, 1, 2));
  EXPECT_THAT(queue.lose(1), IsEmpty());
  // A thread of the leader is given the innocent ones, and not run 0 as long as rank 2 lives.
  EXPECT_EQ(queue.wait_for_run()->index, 1U);
  EXPECT_EQ(queue.wait_for_run()->index, 2U);
  ASSERT_THAT(indices(queue.give(2, 1, 0)), ElementsAre(0));
  EXPECT_THAT(indices(queue.lose(2)), ElementsAre(0));
  EXPECT_EQ(queue.finish(0), nullptr);
}

TEST(RunQueue, TheLeaderTakesASuspectWhenNoWorkerIsLeft) {
  const auto runs = runs_at({0});
  RunQueue queue(runs);
  queue.set_threads(1, 1);
  ASSERT_THAT(indices(queue.give(1, 1, 0)), ElementsAre(0));
  ASSERT_THAT(queue.lose(1), IsEmpty());
  EXPECT_EQ(queue.wait_for_run()->index, 0U);
}

TEST(RunQueue, AfterAStopNothingIsGiven) {
  const auto runs = runs_at({0, 1});
  RunQueue queue(runs);
  queue.stop();
  EXPECT_THAT(queue.give(1, 1, 1), IsEmpty());
  EXPECT_EQ(queue.wait_for_run(), nullptr);
}

}  // namespace
}  // namespace bubblesim::sweep
