#include "sim/program/batching.hpp"

#include <gtest/gtest.h>

namespace bubblesim::program {
namespace {

TEST(Batching, ABatchIsDueWhenItIsFullOrItsOldestHasWaited) {
  const Batching batching{.max_batch = 4, .max_wait = Duration{100}};
  EXPECT_EQ(batching.due(Duration{10}, Duration{60}), Duration{60});
  EXPECT_EQ(batching.due(Duration{10}, Duration{160}), Duration{110});
  EXPECT_EQ(batching.due(Duration{10}, Duration::max()), Duration{110});
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
