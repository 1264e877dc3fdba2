// One store, two sweeps that share runs: what every backend shows of each.
#include <gmock/gmock.h>

#include "sim/store/store_export.hpp"
#include "tests/unit/sim/store/sample_record.hpp"
#include "tests/unit/sim/store/store_cases.hpp"

namespace bubblesim::store {
namespace {

using testing::ElementsAre;

/// The sample run `number` as another sweep plans it: at that index, with settings of its own.
RunRecord as_of_other(RunRecord record, std::uint64_t index) {
  record.sweep = "other";
  record.run.index = index;
  record.run.point = "q" + std::to_string(index);
  record.run.repetition = 4;
  record.run.settings = {{"/policies", "\"both\""}};
  return record;
}

/// Runs 0, 1, 2 of "load"; "other" plans 1, 2, 3 at its indices 0, 1, 2.
std::vector<RunRecord> of_load() { return {sample_record(0), sample_record(1), sample_record(2)}; }
std::vector<RunRecord> of_other() {
  return {as_of_other(sample_record(1), 0), as_of_other(sample_record(2), 1),
          as_of_other(sample_record(3), 2)};
}
std::vector<PlannedRun> plan_of(const std::vector<RunRecord>& records) {
  std::vector<PlannedRun> plan;
  for (const RunRecord& record : records) plan.push_back(record.run);
  return plan;
}

/// "sweep index key's last digit point", a run each.
std::vector<std::string> runs(ResultsStore& store, const RowFilter& filter = {}) {
  std::vector<std::string> found;
  EXPECT_TRUE(store.each_run(filter, [&](const StoredRun& run) {
    found.push_back(run.sweep + " " + std::to_string(run.run.index) + " " + run.run.key.back() +
                    " " + run.run.point);
  }));
  return found;
}

std::string csv(ResultsStore& store, const RowFilter& filter) {
  std::string text;
  EXPECT_TRUE(export_rows(store, filter, ExportFormat::kCsv, [&](std::string_view piece) {
    text += piece;
    return Result<void>();
  }));
  return text;
}

std::size_t records(ResultsStore& store, const RowFilter& filter = {}) {
  std::size_t count = 0;
  const auto read = store.each_record(filter, [&](const RunRecord&) { ++count; });
  EXPECT_TRUE(read) << read.error().text();
  return count;
}

TEST_P(StoreCases, TwoSweepsThatShareTwoOfThreeRunsShowThreeEach) {
  const auto store = open();
  ASSERT_EQ(store->add(of_load()).value_or(9), 3U);
  ASSERT_TRUE(store->join("other", plan_of(of_other())));
  EXPECT_THAT(runs(*store, {{"other"}, {}, {}, {}, {}}),
              ElementsAre("other 0 1 q0", "other 1 2 q1"))
      << "run 3 is not stored yet";
  const RunRecord last = of_other()[2];
  ASSERT_EQ(store->add({&last, 1}).value_or(9), 1U);
  EXPECT_THAT(runs(*store), ElementsAre("load 0 0 p0", "load 1 1 p1", "load 2 2 p2",
                                        "other 0 1 q0", "other 1 2 q1", "other 2 3 q2"));
  EXPECT_EQ(store->done().value().size(), 4U) << "each run once";
  EXPECT_EQ(records(*store), 4U);
  EXPECT_EQ(records(*store, {{"other"}, {}, {}, {}, {}}), 3U);
  EXPECT_EQ(records(*store, {{"load", "other"}, {}, {}, {}, {}}), 6U);
  EXPECT_EQ(runs(*store, {{}, {}, {}, {{"/policies", "\"both\""}}, {}}).size(), 3U);
  EXPECT_EQ(runs(*store, {{}, {}, {}, {}, sample_key(1)}).size(), 2U);
  EXPECT_TRUE(store->check());
}

TEST_P(StoreCases, ASweepIsExportedAsIfItWereAloneInItsStore) {
  const auto store = open();
  ASSERT_TRUE(store->add(of_other()));
  const std::string alone = csv(*store, {{"other"}, {}, {}, {}, {}});
  EXPECT_EQ(std::count(alone.begin(), alone.end(), '\n'), 1 + 3 * 2);
  std::string why_not;
  const auto second = GetParam().make(why_not);
  ASSERT_TRUE(second) << why_not;
  const auto shared = open_store(second->where(), StoreAccess::kWrite);
  ASSERT_TRUE(shared && (*shared)->add(of_load()));
  EXPECT_EQ((*shared)->add(of_other()).value_or(9), 1U) << "two are there already";
  EXPECT_EQ(csv(**shared, {{"other"}, {}, {}, {}, {}}), alone);
}

TEST_P(StoreCases, JoiningAgainOrTheOwnSweepChangesNothing) {
  const auto store = open();
  ASSERT_TRUE(store->add(of_load()));
  ASSERT_TRUE(store->join("load", plan_of(of_load())));
  EXPECT_EQ(runs(*store).size(), 3U);
  ASSERT_TRUE(store->join("other", plan_of(of_other())));
  const auto before = runs(*store);
  ASSERT_TRUE(store->join("other", plan_of(of_other())));
  EXPECT_EQ(runs(*store), before);
  EXPECT_FALSE(open(StoreAccess::kRead)->join("third", plan_of(of_load())));
}

TEST_P(StoreCases, AFailureThatAnotherSweepsRunReplacesStaysARunOfItsSweep) {
  const auto store = open();
  const RunRecord failed = failed_record(1, "bad");
  ASSERT_TRUE(store->add({&failed, 1}));
  ASSERT_TRUE(store->join("third", std::vector<PlannedRun>{failed.run}));
  EXPECT_THAT(store->failed().value(), ElementsAre(sample_key(1)));
  const RunRecord done = as_of_other(sample_record(1), 0);
  EXPECT_EQ(store->add({&done, 1}).value_or(9), 1U);
  EXPECT_THAT(runs(*store), ElementsAre("load 1 1 p1", "other 0 1 q0", "third 1 1 p1"));
  ASSERT_TRUE(store->each_run({}, [](const StoredRun& run) {
    EXPECT_EQ(run.status, RunStatus::kDone);
    EXPECT_EQ(run.stored_by, "other");
  }));
  EXPECT_TRUE(store->failed().value().empty());
  EXPECT_TRUE(store->check());
}

TEST_P(StoreCases, OfOneKeyInABatchUnderTwoSweepsBothAreShown) {
  const auto store = open();
  const std::vector<RunRecord> batch{failed_record(1, "bad"), as_of_other(sample_record(1), 0)};
  EXPECT_EQ(store->add(batch).value_or(9), 1U);
  EXPECT_THAT(runs(*store), ElementsAre("load 1 1 p1", "other 0 1 q0"));
}

TEST_P(StoreCases, ManySharedRunsAreReadWhole) {
  const auto store = open();
  std::vector<RunRecord> all, others;
  for (std::uint64_t i = 0; i < 450; ++i) {  // pages hold 200
    all.push_back(sample_record(i));
    others.push_back(as_of_other(all.back(), 450 - i));
  }
  ASSERT_TRUE(store->add(all));
  ASSERT_TRUE(store->join("other", plan_of(others)));
  std::vector<std::uint64_t> order;
  ASSERT_TRUE(store->each_run({}, [&](const StoredRun& run) {
    order.push_back(run.run.index + (run.sweep == "load" ? 0 : 449));
  }));
  ASSERT_EQ(order.size(), 900U);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
}

}  // namespace
}  // namespace bubblesim::store
