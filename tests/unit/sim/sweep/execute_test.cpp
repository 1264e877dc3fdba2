// Runs of a plan on threads: the same records on any number of them, failures beside the rest.
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <stdexcept>

#include "policies/builtin.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/estimate.hpp"
#include "sim/sweep/execute.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Records by index, as bytes, without what differs from start to start.
std::map<std::uint64_t, store::RunRecord> execute(const std::vector<store::PlannedRun>& runs,
                                           const policy::Registry& registry,
                                           std::size_t threads) {
  std::map<std::uint64_t, store::RunRecord> records;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  SweepPorts ports;
  ports.next = [&]() -> std::optional<store::PlannedRun> {
    const std::size_t index = next++;
    return index < runs.size() ? std::optional(runs[index]) : std::nullopt;
  };
  ports.done = [&](store::RunRecord&& record) {
    record.cpu = {};
    record.finished_unix_ns = 0;
    const std::scoped_lock lock(mutex);
    records[record.run.index] = std::move(record);
  };
  ports.stopped = [] { return false; };
  execute_runs(registry, options(threads), ports);
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
    EXPECT_EQ(encode(record), encode(three.at(index)));
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
  const auto sweep = read_sweep_config(
      write_sweep(folder, R"([{"pointer": "/policies/0", "values": ["exclusive", "thrower"]},
                              {"pointer": "/fillers/batch/gpus", "values": [[0], [7]]}])"),
      {});
  ASSERT_TRUE(sweep) << texts(sweep.error());
  const auto plan = plan_sweep(*sweep, registry, {kDeviceFolder, "1"});
  ASSERT_TRUE(plan) << texts(plan.error());
  const auto records = execute(plan->runs, registry, 2);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records.at(0).status, store::RunStatus::kDone);
  EXPECT_THAT(records.at(1).reason, HasSubstr("/fillers/0/gpus: found GPU 7"));
  EXPECT_THAT(records.at(2).reason, HasSubstr("policy thrower: threw an exception: boo"));
  for (const int index : {1, 2, 3}) {
    EXPECT_EQ(records.at(index).status, store::RunStatus::kFailed) << index;
    EXPECT_THAT(records.at(index).rows, IsEmpty());
  }
}

TEST(InputCache, LoadsEachInputOnce) {
  const Folder folder;
  const auto plan = plan_of(folder, R"([{"pointer": "/policies/1", "values": ["mps", "ideal"]}])",
                            R"(, "repetitions": 4)");
  ASSERT_TRUE(plan) << texts(plan.error());
  const auto registry = policies::builtin_policies();
  SharedWork shared(kDeviceFolder);
  for (const store::PlannedRun& run : plan->runs) {
    EXPECT_EQ(execute_run(run, registry, options(1), shared).status, store::RunStatus::kDone);
  }
  EXPECT_EQ(shared.inputs.loads(), 2U);  // the job, and the filler
}

TEST(InputCache, WhatChangesTheJobLoadsItAgain) {
  const Folder folder;
  const auto plan =
      plan_of(folder, R"([{"pointer": "/training/host_speed", "values": [1, 2]},
                          {"pointer": "/training/use_iterations", "values": ["1", "2"]}])");
  ASSERT_TRUE(plan) << texts(plan.error());
  const auto registry = policies::builtin_policies();
  InputCache inputs(kDeviceFolder);
  for (const store::PlannedRun& run : plan->runs) {
    const auto config = run::parse_run_config(run.config, "s", registry);
    ASSERT_TRUE(config);
    EXPECT_TRUE(inputs.load(*config, Json::parse(run.config)));
  }
  EXPECT_EQ(inputs.loads(), 4U + 1U);  // a job of each speed and iteration, and the filler
}

TEST(InputCache, KeepsNoMoreThanItMayAndLoadsAgain) {
  const Folder folder;
  const auto plan = plan_of(folder, R"([{"pointer": "/device", "values": ["h100", "h200"]}])",
                            R"(, "repetitions": 2)");
  ASSERT_TRUE(plan) << texts(plan.error());
  const auto registry = policies::builtin_policies();
  InputCache on_one(kDeviceFolder, 1);  // bytes: only what was used last
  InputCache all(kDeviceFolder);
  for (const std::size_t i : {0U, 2U, 1U, 3U}) {    // h100, h200, h100, h200
    const std::string& text = plan->runs[i].config;
    const auto config = run::parse_run_config(text, "s", registry);
    ASSERT_TRUE(config);
    EXPECT_TRUE(on_one.load(*config, Json::parse(text)));
    EXPECT_TRUE(all.load(*config, Json::parse(text)));
  }
  EXPECT_EQ(all.loads(), 4U);
  EXPECT_EQ(on_one.loads(), 8U);
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

}  // namespace
}  // namespace bubblesim::sweep
