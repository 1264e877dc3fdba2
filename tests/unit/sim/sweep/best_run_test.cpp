// The best result so far, and what is said where none is good enough.
#include <gtest/gtest.h>

#include "sim/sweep/remaining.hpp"

namespace bubblesim::sweep {
namespace {

store::PlannedRun run_of(std::uint64_t index) {
  store::PlannedRun run;
  run.index = index;
  return run;
}

observe::ResultRow row_of(double requests_per_s, double kept) {
  observe::ResultRow row;
  for (const observe::ResultColumn& column : observe::result_columns()) {
    row.cells.emplace_back();
    if (column.name == "filler_requests_per_s") row.cells.back() = requests_per_s;
    if (column.name == "training_normalised_fraction") row.cells.back() = kept;
  }
  return row;
}

TEST(BestSoFar, IsTheMostOfThoseThatKeepTrainingAndOfEqualsTheFirst) {
  BestSoFar best({});  // most requests a second, 0.95 of training kept
  best.look_at(run_of(3), row_of(100, 0.96));
  best.look_at(run_of(1), row_of(100, 0.99));
  best.look_at(run_of(2), row_of(500, 0.94));
  ASSERT_TRUE(best.best());
  EXPECT_EQ(best.best()->value, 100);
  EXPECT_EQ(best.best()->index, 1U);
}

TEST(BestSoFar, IsNoOracle) {
  BestSoFar best({});
  observe::ResultRow oracle = row_of(900, 1);
  std::size_t column = 0;
  while (observe::result_columns()[column].name != "oracle") ++column;
  oracle.cells[column] = std::int64_t{1};
  best.look_at(run_of(0), oracle);
  best.look_at(run_of(1), row_of(100, 1));
  EXPECT_EQ(best.best()->index, 1U);
}

TEST(BestSoFar, NamesTheClosestWhereNoneKeepsEnough) {
  BestSoFar best({});
  best.look_at(run_of(0), row_of(300, 0.92));
  best.look_at(run_of(1), row_of(200, 0.94));
  EXPECT_FALSE(best.best());
  ASSERT_TRUE(best.closest());
  EXPECT_EQ(best.closest()->value, 0.94);
  EXPECT_EQ(best.closest()->index, 1U);
}

TEST(BestSoFar, TheLeastOfAColumnHasAPrefix) {
  const auto goal = parse_best_goal("min:latency_p95_ms");
  ASSERT_TRUE(goal);
  EXPECT_EQ(goal->better, Better::kLess);
  EXPECT_EQ(goal->column, "latency_p95_ms");
  EXPECT_FALSE(parse_best_goal("latency_p96_ms"));
}

}  // namespace
}  // namespace bubblesim::sweep
