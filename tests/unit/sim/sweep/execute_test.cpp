// Runs of a plan on threads: the same records on any number of them, failures beside the rest.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "policies/builtin.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/remaining.hpp"
#include "sim/sweep/run_journal.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::HasSubstr, testing::IsEmpty;

// Records by index, as bytes, without what differs from start to start.
std::map<std::uint64_t, store::RunRecord> execute(const std::vector<store::PlannedRun>& runs,
                                           const policy::Registry& registry,
                                           std::size_t threads) {
  std::map<std::uint64_t, store::RunRecord> records;
  std::mutex mutex;
  SweepPorts ports;
  ports.done = [&](store::RunRecord&& record) {
    record.cpu = {};
    record.finished_unix_ns = 0;
    const std::scoped_lock lock(mutex);
    records[record.run.index] = std::move(record);
  };
  ports.stopped = [] { return false; };
  SharedWork shared(kDeviceFolder);
  execute_runs(runs, registry, options(threads), ports, shared);
  return records;
}

TEST(ExecuteRuns, GiveTheSameRecordsOnAnyNumberOfThreads) {
  const Folder folder;
  const auto plan = plan_of(folder, R"([{"pointer": "/training/jitter_cv", "values": [0, 0.1]}])",
                            R"(, "repetitions": 3)");
  ASSERT_TRUE(plan) << texts(plan.error());
  const auto on_one = execute(plan->runs, policies::builtin_policies(), 1);
  const auto three = execute(plan->runs, policies::builtin_policies(), 3);
  ASSERT_EQ(on_one.size(), 6U);
  for (const auto& [index, record] : on_one) {
    EXPECT_EQ(record.reason, "");
    EXPECT_EQ(record.rows.size(), 2U);
    EXPECT_EQ(record, three.at(index));
  }
}

class Thrower final : public policy::Policy {
 public:
  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    throw std::runtime_error("boo");
  }
  policy::ClientSharing share(const policy::ClientInfo&) override { return {}; }
};

TEST(ExecuteRuns, ARunThatFailsIsARecordAndTheRestGoOn) {
  const Folder folder;
  auto registry = policies::builtin_policies();
  policy::PolicySpec thrower;
  thrower.name = "thrower";
  thrower.make = [](const policy::ParameterSet&) { return std::make_unique<Thrower>(); };
  registry.add(thrower);
  const auto sweep = must(read_sweep_config(
      write_sweep(folder, R"([{"pointer": "/policies/0", "values": ["exclusive", "thrower"]},
                              {"pointer": "/fillers/batch/gpus", "values": [[0], [7]]}])"),
      {}));
  const auto plan = must(plan_sweep(sweep, registry, {kDeviceFolder, "1"}));
  const auto records = execute(plan.runs, registry, 2);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records.at(0).status, store::RunStatus::kDone);
  EXPECT_THAT(records.at(1).reason, HasSubstr("/fillers/0/gpus: found GPU 7"));
  EXPECT_THAT(records.at(2).reason, HasSubstr("policy thrower: threw an exception: boo"));
  for (const int index : {1, 2, 3}) {
    EXPECT_EQ(records.at(index).status, store::RunStatus::kFailed) << index;
    EXPECT_THAT(records.at(index).rows, IsEmpty());
  }
}

std::size_t loads(const SharedWork& shared) {
  return shared.trainings.made().count + shared.fillers.made().count;
}

TEST(SharedWork, LoadsEachInputOnce) {
  const Folder folder;
  const auto plan = plan_of(folder, R"([{"pointer": "/policies/1", "values": ["mps", "ideal"]}])",
                            R"(, "repetitions": 4)");
  ASSERT_TRUE(plan) << texts(plan.error());
  const auto registry = policies::builtin_policies();
  SharedWork shared(kDeviceFolder);
  for (const store::PlannedRun& run : plan->runs) {
    EXPECT_EQ(execute_run(run, registry, options(1), shared).status, store::RunStatus::kDone);
  }
  EXPECT_EQ(loads(shared), 2U);  // the job, and the filler
}

TEST(SharedWork, WhatChangesTheJobLoadsItAgain) {
  const Folder folder;
  const auto plan =
      must(plan_of(folder, R"([{"pointer": "/training/host_speed", "values": [1, 2]},
                               {"pointer": "/training/use_iterations", "values": ["1", "2"]}])"));
  const auto registry = policies::builtin_policies();
  SharedWork inputs(kDeviceFolder);
  for (const store::PlannedRun& run : plan.runs) {
    const auto config = must(run::parse_run_config(run.config, "s", registry));
    EXPECT_TRUE(inputs.load(config, Json::parse(run.config)));
  }
  EXPECT_EQ(loads(inputs), 4U + 1U);  // a job of each speed and iteration, and the filler
}

TEST(SharedWork, KeepsNoMoreThanItMayAndLoadsAgain) {
  const Folder folder;
  const auto plan = must(plan_of(folder, R"([{"pointer": "/device", "values": ["h100", "h200"]}])",
                                 R"(, "repetitions": 2)"));
  const auto registry = policies::builtin_policies();
  SharedWork on_one(kDeviceFolder, 1);  // bytes: only what was used last
  SharedWork all(kDeviceFolder);
  for (const std::size_t i : {0U, 2U, 1U, 3U}) {    // h100, h200, h100, h200
    const std::string& text = plan.runs[i].config;
    const auto config = must(run::parse_run_config(text, "s", registry));
    EXPECT_TRUE(on_one.load(config, Json::parse(text)));
    EXPECT_TRUE(all.load(config, Json::parse(text)));
  }
  EXPECT_EQ(loads(all), 4U);
  EXPECT_EQ(loads(on_one), 8U);
}

// What a dry run measures: some runs of the plan, and what of them the whole plan repeats.

RunCost cost_of(const std::string& axes, Duration budget) {
  const Folder folder;
  const auto plan = plan_of(folder, axes);
  if (!plan) {
    ADD_FAILURE() << texts(plan.error());
    return {};
  }
  return measure_runs(plan->runs, policies::builtin_policies(), options(1), budget);
}

TEST(MeasureRuns, MeasuresEightOfManyAndOneWithoutTime) {
  const std::string axes =
      R"([{"pointer": "/policies/0", "values": ["exclusive", "ideal", "specinf"]},
          {"pointer": "/fillers/batch/max_batch", "values": [1, 2, 3, 4]}])";
  const RunCost much = cost_of(axes, std::chrono::hours{1});
  EXPECT_EQ(much.runs, 8U);
  EXPECT_GT(much.run, Duration{});
  EXPECT_EQ(much.failure, "");
  const RunCost little = cost_of(axes, Duration{});
  EXPECT_EQ(little.runs, 1U);
  EXPECT_GT(little.run, Duration{});
}

TEST(MeasureRuns, SaysWhyARunFails) {
  const RunCost cost =
      cost_of(R"([{"pointer": "/fillers/batch/gpus", "values": [[7]]}])", std::chrono::hours{1});
  EXPECT_EQ(cost.runs, 1U);
  EXPECT_THAT(cost.failure, HasSubstr("found GPU 7"));
}

// Records on their way to a store, which here is a list or refuses.

class ListStore final : public store::ResultsStore {
 public:
  Result<std::size_t> add(std::span<const store::RunRecord> records) override {
    ++batches;
    if (full) return fail("results.db", {}, "the disk is full");
    stored += records.size();
    return records.size();
  }
  Result<void> join(const std::string&, std::span<const store::PlannedRun>) override { return {}; }
  Result<std::unordered_set<std::string>> done() override {
    return std::unordered_set<std::string>{};
  }
  Result<std::unordered_set<std::string>> failed() override {
    return std::unordered_set<std::string>{};
  }
  Result<void> each_row(const store::RowFilter&,
                        const std::function<void(const store::StoredRow&)>&) override {
    return {};
  }
  Result<void> each_run(const store::RowFilter&,
                        const std::function<void(const store::RunRecord&)>&) override {
    return {};
  }
  Result<std::optional<observe::LatencyHistogram>> latency(const std::string&, std::uint32_t,
                                                           std::uint32_t) override {
    return std::optional<observe::LatencyHistogram>{};
  }
  Result<void> each_record(const store::RowFilter&,
                           const std::function<void(const store::RunRecord&)>&) override {
    return {};
  }
  Result<void> check_names(const store::RowFilter&) override { return {}; }
  Result<void> check() override { return {}; }

  std::atomic<std::size_t> stored{0};
  std::atomic<std::size_t> batches{0};
  bool full = false;
};

TEST(RecordWriter, StoresEverythingFromAllThreadsInFewBatches) {
  ListStore store;
  RecordWriter writer(store);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&writer] {
      for (int j = 0; j < 100; ++j) writer.add({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(writer.finish());
  EXPECT_EQ(store.stored, 400U);
  EXPECT_LE(store.batches, 3U);
}

TEST(RecordWriter, DoesNotKeepARecordForLong) {
  ListStore store;
  RecordWriter writer(store);
  writer.add({});
  const auto start = std::chrono::steady_clock::now();
  while (store.stored == 0 && std::chrono::steady_clock::now() - start < std::chrono::seconds{10}) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  EXPECT_EQ(store.stored, 1U);  // nobody called finish()
}

TEST(RecordWriter, TellsOfAStoreThatRefusesAndWhatThatCosts) {
  ListStore store;
  store.full = true;
  RecordWriter writer(store);
  writer.add({});
  writer.add({});
  const auto done = error_of(writer.finish());
  EXPECT_TRUE(writer.failed());
  EXPECT_THAT(done.text(), HasSubstr("the disk is full; 2 finished runs could not be"));
}

// Journals of runs in flight: what a process that died leaves, and what follows from it.

const std::string kFirst(32, '1');
const std::string kSecond(32, '2');

store::PlannedRun run_of(const std::string& key) {
  store::PlannedRun run;
  run.key = key;
  return run;
}

/// As a process that died left it; `letter`: r in flight, c crashed, - ended.
std::string left(const std::string& key, char letter, const std::string& sweep = "s") {
  return "runs in flight of a process of bubblesim sweep " + sweep + "\n" + key + ' ' + letter +
         '\n';
}

DeadJournals read(const Folder& folder, const std::string& sweep = "s") {
  return must(DeadJournals::read({folder.path("runs.db"), sweep}));
}

std::size_t files(const Folder& folder) {
  const std::filesystem::directory_iterator all(folder.path(""));
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(RunJournal, OfAProcessThatLivesIsNoEvidenceAndGoesWithIt) {
  const Folder folder;
  {
    const auto journal = must(RunJournal::create({folder.path("runs.db"), "s"}));
    journal->started(run_of(kFirst));
    EXPECT_EQ(files(folder), 1U);
    EXPECT_TRUE(read(folder).empty());
    journal->ended();
  }
  EXPECT_EQ(files(folder), 0U);
}

TEST(RunJournal, NamesTheRunOfTheThreadThatCrashes) {
  const Folder folder;
  const auto journal = must(RunJournal::create({folder.path("runs.db"), "s"}));
  journal->started(run_of(kFirst));
  EXPECT_STREQ(RunJournal::mark_crash(), kFirst.c_str());
  std::thread([] { EXPECT_EQ(RunJournal::mark_crash(), nullptr) << "has no run"; }).join();
  journal->ended();
  EXPECT_EQ(RunJournal::mark_crash(), nullptr);
}

TEST(DeadJournals, CountTheDeathsOfARunAndSaveOnesThatEnded) {
  const Folder folder;
  folder.write("runs.db.running-aaaaaa", left(kFirst, 'r') + kSecond + " -\n");
  folder.write("runs.db.running-bbbbbb", left(kFirst, 'r'));
  const DeadJournals dead = read(folder);
  EXPECT_EQ(dead.suspicion(kFirst).deaths, 2U);
  EXPECT_FALSE(dead.suspicion(kFirst).crashed);
  EXPECT_EQ(dead.suspicion(kSecond).deaths, 0U);
}

TEST(DeadJournals, AreOfOneSweepAndSkipWhatIsNoJournal) {
  const Folder folder;
  folder.write("runs.db.running-aaaaaa", left(kFirst, 'r', "other"));
  folder.write("runs.db.running-bbbbbb", "");
  folder.write("runs.db.running-cccccc", left("not a key", 'r') + kSecond.substr(0, 20));
  folder.write("more-runs.db.running-dddddd", left(kSecond, 'r'));
  const DeadJournals dead = read(folder);
  EXPECT_EQ(dead.suspicion(kFirst).deaths, 0U);
  EXPECT_EQ(dead.suspicion(kSecond).deaths, 0U);
  EXPECT_EQ(read(folder, "other").suspicion(kFirst).deaths, 1U);
}

TEST(DeadJournals, AreForgottenUnlessTheyNameARunOfAnotherShard) {
  const Folder folder;
  folder.write("runs.db.running-aaaaaa", left(kFirst, 'r'));
  folder.write("runs.db.running-bbbbbb", left(kSecond, 'c'));
  DeadJournals dead = read(folder);
  dead.forget_but({kSecond});
  EXPECT_EQ(files(folder), 1U);
  EXPECT_EQ(dead.suspicion(kFirst).deaths, 0U);
  EXPECT_TRUE(dead.suspicion(kSecond).crashed);
}

// One kill is no evidence: it may have been the user's, of the whole program.
TEST(DeadJournals, ARunIsTriedAgainThenAloneThenNotUnlessItCrashed) {
  EXPECT_EQ(trust_in({0, false}), Trust::kWithOthers);
  EXPECT_EQ(trust_in({1, false}), Trust::kWithOthers);
  EXPECT_EQ(trust_in({2, false}), Trust::kAlone);
  EXPECT_EQ(trust_in({3, false}), Trust::kNone);
  EXPECT_EQ(trust_in({1, true}), Trust::kNone);
  EXPECT_THAT(reason_of({1, true}), HasSubstr("brought the program down"));
  EXPECT_THAT(reason_of({3, false}), HasSubstr("in flight 3 times"));
}

}  // namespace
}  // namespace bubblesim::sweep
