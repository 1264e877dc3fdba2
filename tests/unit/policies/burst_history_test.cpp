// Bursts, their references and what their inflation leads to.
#include "policies/burst_history.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

using Reaction = BurstHistory::Reaction;

TEST(burst_history, takes_the_shortest_of_all_time_above_the_least_length) {
  BurstHistory history({.shortest_burst = 6});
  history.add(6);
  EXPECT_EQ(history.shortest(), 0);
  history.add(9);
  history.add(7);
  history.add(8);
  EXPECT_EQ(history.shortest(), 7);
}

TEST(burst_history, forgets_bursts_beyond_its_length) {
  BurstHistory history({.history = 3});
  history.add(1);
  EXPECT_EQ(history.shortest_recent(), 2);  // never less than 2
  for (const int length : {5, 4, 6}) history.add(length);
  EXPECT_EQ(history.shortest_recent(), 4);
  for (const int length : {8, 9}) history.add(length);
  EXPECT_EQ(history.shortest_recent(), 6);
}

TEST(burst_history, cuts_between_two_inflations_and_recovers_at_every_fifth_burst) {
  BurstHistory history({});
  for (int i = 0; i < 4; ++i) history.add(10);
  EXPECT_EQ(history.react(1.6), Reaction::kCut);
  EXPECT_EQ(history.react(3.9), Reaction::kCut);
  EXPECT_EQ(history.react(4.0), Reaction::kKeep);
  EXPECT_EQ(history.react(1.0), Reaction::kKeep);
  history.add(10);  // the fifth
  EXPECT_EQ(history.react(1.19), Reaction::kRecover);
  EXPECT_EQ(history.react(1.2), Reaction::kKeep);
}

}  // namespace
}  // namespace bubblesim::policies
