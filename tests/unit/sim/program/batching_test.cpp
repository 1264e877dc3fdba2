#include "sim/program/batching.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace bubblesim::program {
namespace {

TEST(Batching, ABatchIsDueWhenItIsFullOrItsOldestHasWaited) {
  const Batching batching{.max_batch = 4, .max_wait = Duration{100}};
  const auto due = [&](const std::vector<Duration>& arrivals) {
    return batching.due(arrivals.size(), [&](std::size_t i) { return arrivals[i]; });
  };
  using Ns = Duration;
  EXPECT_EQ(due({Ns{10}, Ns{20}, Ns{30}, Ns{60}}), Ns{60});    // the fourth fills it
  EXPECT_EQ(due({Ns{10}, Ns{20}, Ns{30}, Ns{160}}), Ns{110});  // 10 + 100
  EXPECT_EQ(due({Ns{10}, Ns{20}, Ns{30}}), Ns{110});           // the fourth is not known
  EXPECT_EQ(due({Ns{10}, Ns{20}, Ns{30}, Ns{60}, Ns{90}}), Ns{60});
}

TEST(Batching, ABatchTakesWhatWaitsUpToItsMost) {
  const Batching batching{.max_batch = 4};
  EXPECT_EQ(batching.batch_size(3), 3U);
  EXPECT_EQ(batching.batch_size(5), 4U);
}

TEST(Batching, APassGrowsByItsParts) {
  const Batching batching{.requests_per_pass = 4, .batch_cost = 0.5};
  EXPECT_DOUBLE_EQ(batching.pass_factor(1), 1);
  EXPECT_DOUBLE_EQ(batching.pass_factor(4), 1);
  EXPECT_DOUBLE_EQ(batching.pass_factor(5), 1.5);   // 2 parts
  EXPECT_DOUBLE_EQ(batching.pass_factor(12), 2.0);  // 3 parts
}

}  // namespace
}  // namespace bubblesim::program
