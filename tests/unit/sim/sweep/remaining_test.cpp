// What is left of a plan where the store has runs of another sweep.
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/sweep/remaining.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::sweep {
namespace {

// The best result so far, and what is said where none is good enough.

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

namespace fs = std::filesystem;

class Remaining : public testing::Test {
 protected:
  Remaining() {
    std::string pattern = (fs::temp_directory_path() / "remaining_test_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    store_ = std::move(
        *store::open_store((folder_ / "results.db").string(), store::StoreAccess::kWrite));
    // "load" did 0 and 1, and 2 failed; "other" plans 1, 2, 3.
    const std::vector<store::RunRecord> there{store::sample_record(0), store::sample_record(1),
                                              store::failed_record(2, "bad")};
    EXPECT_TRUE(store_->add(there));
    for (std::uint64_t number = 1; number <= 3; ++number) {
      plan_.push_back(store::sample_record(number).run);
      plan_.back().index = number - 1;
    }
  }
  ~Remaining() override { fs::remove_all(folder_); }
  [[nodiscard]] RemainingRuns left(FailedRuns failed) {
    BestSoFar best{BestGoal{}};
    auto result = remaining_runs(plan_, "other", *store_, failed, best);
    EXPECT_TRUE(result);
    return result.value_or(RemainingRuns{});
  }

  fs::path folder_;
  std::unique_ptr<store::ResultsStore> store_;
  std::vector<store::PlannedRun> plan_;
};

TEST_F(Remaining, WhatAnotherSweepDidIsNotDoneAgain) {
  const RemainingRuns before = left(FailedRuns::kKeep);
  EXPECT_EQ(before.done, 1U);
  EXPECT_EQ(before.failed, 1U);
  ASSERT_EQ(before.runs.size(), 1U);
  EXPECT_EQ(before.runs[0].key, store::sample_key(3));
  EXPECT_EQ(before.timed, 0U) << "nothing is known as the sweep's own yet";
  ASSERT_TRUE(store_->join("other", plan_));
  const RemainingRuns after = left(FailedRuns::kKeep);
  EXPECT_EQ(after.runs.size(), 1U);
  EXPECT_EQ(after.timed, 1U);
  EXPECT_EQ(after.cpu, std::chrono::milliseconds(250));
}

TEST_F(Remaining, WhatFailedUnderAnotherSweepIsTriedAgainWhenAskedFor) {
  const RemainingRuns again = left(FailedRuns::kRetry);
  EXPECT_EQ(again.done, 1U);
  EXPECT_EQ(again.failed, 0U);
  ASSERT_EQ(again.runs.size(), 2U);
  EXPECT_EQ(again.runs[0].key, store::sample_key(2));
}

}  // namespace
}  // namespace bubblesim::sweep
