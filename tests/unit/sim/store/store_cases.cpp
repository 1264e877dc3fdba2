#include "tests/unit/sim/store/store_cases.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/store/run_record.hpp"
#include "sim/store/store_export.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::store {
namespace {

std::vector<std::uint64_t> digests(ResultsStore& store) {
  std::vector<std::uint64_t> all;
  const auto read = store.each_record([&](const RunRecord& r) { all.push_back(record_digest(r)); });
  EXPECT_TRUE(read) << read.error().text();
  return all;
}

std::vector<std::string> policies(ResultsStore& store, const RowFilter& filter) {
  std::vector<std::string> names;
  EXPECT_TRUE(store.each_row(filter, [&](const StoredRow& row) {
    names.push_back(std::to_string(row.run.index) + ":" +
                    std::get<std::string>(row.row.cells[column_place("policy")]));
  }));
  return names;
}

TEST_P(StoreCases, GivesBackWhatWasStored) {
  RunRecord record = sample_record(3);
  record.run.seed = ~std::uint64_t{0};
  record.run.settings.push_back({"/name", "\"\xC3\xA4\""});
  set_cell(record, 0, "bubble_fraction", 0.1 + 0.2);
  ASSERT_EQ(open()->add({&record, 1}).value_or(9), 1U);
  const auto store = open(StoreAccess::kRead);
  ASSERT_TRUE(store);
  std::size_t count = 0;
  ASSERT_TRUE(store->each_record([&](const RunRecord& read) {
    ++count;
    EXPECT_EQ(read, record);
  }));
  EXPECT_EQ(count, 1U);
  ASSERT_TRUE(store->check());
}

TEST_P(StoreCases, AKeyThatIsDoneIsStoredOnce) {
  const auto store = open();
  ASSERT_EQ(store->add(sample_records(0, 3)).value_or(9), 3U);
  auto again = sample_records(2, 4);
  again[0].host = "elsewhere";
  EXPECT_EQ(store->add(again).value_or(9), 1U);
  EXPECT_EQ(store->done().value().size(), 4U);
  std::vector<std::string> hosts;
  ASSERT_TRUE(store->each_run({}, [&](const RunRecord& run) { hosts.push_back(run.host); }));
  EXPECT_EQ(hosts, std::vector<std::string>(4, "node1"));
}

TEST_P(StoreCases, AFailureIsNotDoneAndIsReplacedByWhatComesLater) {
  const auto store = open();
  RunRecord failed = failed_record(1, "bad trace");
  ASSERT_EQ(store->add({&failed, 1}).value_or(9), 1U);
  EXPECT_TRUE(store->done().value().empty());
  EXPECT_EQ(store->add({&failed, 1}).value_or(9), 0U) << "the same again";
  failed.finished_unix_ns += 5;
  failed.reason = "still bad";
  EXPECT_EQ(store->add({&failed, 1}).value_or(9), 1U);
  ASSERT_TRUE(store->each_run({}, [&](const RunRecord& run) {
    EXPECT_EQ(run.reason, "still bad");
    EXPECT_EQ(run.status, RunStatus::kFailed);
  }));
  EXPECT_EQ(store->add(sample_records(1, 2)).value_or(9), 1U);
  EXPECT_EQ(store->done().value().count(sample_key(1)), 1U);
  EXPECT_EQ(store->add({&failed, 1}).value_or(9), 0U) << "what is done stays";
  EXPECT_TRUE(store->check());
}

TEST_P(StoreCases, OfOneKeyTwiceInABatchTheDoneOneIsStored) {
  const auto store = open();
  std::vector<RunRecord> batch{failed_record(1, "bad"), sample_record(1), failed_record(1, "bad")};
  EXPECT_EQ(store->add(batch).value_or(9), 1U);
  EXPECT_EQ(store->done().value().size(), 1U);
}

TEST_P(StoreCases, RowsComeInTheOrderOfTheSweepWhateverTheOrderOfStoring) {
  const auto store = open();
  for (const std::uint64_t number : {2U, 0U, 1U}) {
    ASSERT_TRUE(store->add(sample_records(number, number + 1)));
  }
  const std::vector<std::string> expected{"0:exclusive", "0:mps",       "1:exclusive",
                                          "1:mps",       "2:exclusive", "2:mps"};
  EXPECT_EQ(policies(*store, {}), expected);
}

TEST_P(StoreCases, FiltersBySweepPolicyFillerAndSettingComparedAsJson) {
  const auto store = open();
  auto records = sample_records(0, 4);
  records[3].sweep = "other";
  ASSERT_TRUE(store->add(records));
  using Names = std::vector<std::string>;
  EXPECT_EQ(policies(*store, {{"load"}, {"mps"}, {}, {}, {}}), (Names{"0:mps", "1:mps", "2:mps"}));
  EXPECT_EQ(policies(*store, {{}, {"mps"}, {}, {{"/fillers/0/load", "0.20"}}, {}}), Names{"2:mps"});
  EXPECT_EQ(policies(*store, {{"other"}, {}, {"resnet"}, {}, {}}), (Names{"3:exclusive", "3:mps"}));
  EXPECT_EQ(policies(*store, {{}, {}, {"bert"}, {}, {}}), Names{});
  EXPECT_EQ(policies(*store, {{}, {}, {}, {{"/device", "\"a100\""}}, {}}), Names{});
  std::size_t runs = 0;
  ASSERT_TRUE(store->each_run({{"load"}, {"tgs"}, {}, {}, {}}, [&](const RunRecord&) { ++runs; }));
  EXPECT_EQ(runs, 0U);
}

TEST_P(StoreCases, AFilterNamesWhatTheStoreHas) {
  const auto store = open();
  auto records = sample_records(0, 2);
  records[1].sweep = "other";
  records.push_back(failed_record(2, "bad"));
  records[2].sweep = "broken";
  ASSERT_TRUE(store->add(records));
  ASSERT_TRUE(store->join("later", {&records[0].run, 1}));
  const auto fault = [&](const RowFilter& filter) {
    const auto checked = store->check_names(filter);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({{"other", "broken", "later"}, {"mps"}, {"resnet"}, {}, {}}), "")
      << "no row has all of them";
  EXPECT_EQ(fault({{}, {"exclusive", "mpss"}, {}, {}, {}}),
            "unknown policy \"mpss\"; did you mean \"mps\"? Known: exclusive, mps");
  EXPECT_EQ(fault({{"laod"}, {}, {}, {}, {}}),
            "unknown sweep \"laod\"; did you mean \"load\"? Known: broken, later, load, other");
  EXPECT_EQ(fault({{}, {}, {"bert"}, {}, {}}), "unknown filler \"bert\"; known: resnet");
}

TEST_P(StoreCases, AHistogramIsFoundByKeyPolicyAndFiller) {
  const auto store = open();
  ASSERT_TRUE(store->add(sample_records(5, 6)));
  const auto found = store->latency(sample_key(5), 1, 0);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->completed(), 20U);
  EXPECT_EQ((*found)->unfinished(), 1U);
  EXPECT_FALSE(store->latency(sample_key(5), 0, 0).value());
  EXPECT_FALSE(store->latency(sample_key(6), 1, 0).value());
}

TEST_P(StoreCases, ManyPagesAreReadWhole) {
  const auto store = open();
  ASSERT_EQ(store->add(sample_records(0, 450)).value_or(0), 450U);  // pages hold 200
  EXPECT_EQ(digests(*store).size(), 450U);
  EXPECT_EQ(policies(*store, {}).size(), 900U);
}

TEST_P(StoreCases, ARecordThatDoesNotFitIsRefusedAndNothingOfItsBatchIsStored) {
  const auto store = open();
  auto batch = sample_records(0, 2);
  batch[1].rows[0].cells.pop_back();
  auto result = store->add(batch);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text().find("cells, expected"), std::string::npos);
  batch = sample_records(0, 2);
  set_cell(batch[1], 0, "events", 1.5);
  result = store->add(batch);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text().find("column events"), std::string::npos);
  EXPECT_TRUE(store->done().value().empty());
}

TEST_P(StoreCases, ReasonsThatAreNoUtf8AreStoredWithTheirBytesReplaced) {
  const auto store = open();
  const RunRecord record = failed_record(1, std::string("bad \xFF\0 name", 11));
  ASSERT_TRUE(store->add({&record, 1}));
  ASSERT_TRUE(store->each_run({}, [](const RunRecord& run) {
    EXPECT_EQ(run.reason, "bad \xEF\xBF\xBD\xEF\xBF\xBD name");
  }));
  EXPECT_TRUE(store->check());
}

TEST_P(StoreCases, FourProgramsWriteOneStore) {
  const std::string where = place_->where();
  std::vector<pid_t> writers;
  for (std::uint64_t writer = 0; writer < 4; ++writer) {
    const pid_t child = fork();
    if (child != 0) {
      writers.push_back(child);
      continue;
    }
    // 100 runs each, in batches of 5; the last 20 of each are the first 20 of the next.
    auto store = open_store(where, StoreAccess::kWrite);
    bool right = store.has_value();
    for (std::uint64_t i = writer * 80; right && i < writer * 80 + 100; i += 5) {
      right = (*store)->add(sample_records(i, i + 5)).has_value();
    }
    _exit(right ? 0 : 1);
  }
  for (const pid_t writer : writers) {
    int status = -1;
    waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const auto store = open();
  EXPECT_EQ(store->done().value().size(), 340U);
  EXPECT_TRUE(store->check());
}

TEST_P(StoreCases, AReaderMayNotWrite) {
  ASSERT_TRUE(open()->add(sample_records(0, 1)));
  const auto store = open(StoreAccess::kRead);
  EXPECT_FALSE(store->add(sample_records(1, 2)));
  EXPECT_EQ(store->done().value().size(), 1U);
}

// One store, two sweeps that share runs: what every backend shows of each.

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
  EXPECT_TRUE(store.each_run(filter, [&](const RunRecord& run) {
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
  ASSERT_TRUE(store->each_run({}, [](const RunRecord& run) {
    EXPECT_EQ(run.status, RunStatus::kDone);
  }));
  ASSERT_TRUE(store->each_record([](const RunRecord& run) { EXPECT_EQ(run.sweep, "other"); }));
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
  ASSERT_TRUE(store->each_run({}, [&](const RunRecord& run) {
    order.push_back(run.run.index + (run.sweep == "load" ? 0 : 449));
  }));
  ASSERT_EQ(order.size(), 900U);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
}

}  // namespace
}  // namespace bubblesim::store
