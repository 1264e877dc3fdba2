// Which runs of a sweep share what their parts do alone, and that nobody sees it in the results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "policies/builtin.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/run_key.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::HasSubstr;

/// Different keys among the points of an axis.
struct Distinct {
  std::size_t training = 0, filler = 0, bubbles = 0;
  friend bool operator==(const Distinct&, const Distinct&) = default;
};

Distinct distinct(const std::string& axis) {
  const Folder folder;
  const auto plan = plan_of(folder, "[" + axis + "]");
  if (!plan) {
    ADD_FAILURE() << texts(plan.error());
    return {};
  }
  std::set<std::string> training, filler, bubbles;
  for (const store::PlannedRun& run : plan->runs) {
    const run::BaselineKeys keys = baseline_keys(Json::parse(run.config));
    training.insert(keys.training);
    filler.insert(keys.fillers.at(0));
    bubbles.insert(keys.bubbles);
  }
  return {training.size(), filler.size(), bubbles.size()};
}

std::string axis(const std::string& pointer, const std::string& values) {
  return R"({"pointer": ")" + pointer + R"(", "values": )" + values + "}";
}

TEST(BaselineKeys, NameAndPoliciesChangeNone) {
  EXPECT_EQ(distinct(axis("/name", R"(["x", "y"])")), (Distinct{1, 1, 1}));
  EXPECT_EQ(distinct(axis("/policies/0", R"(["exclusive", "ideal"])")), (Distinct{1, 1, 1}));
  EXPECT_EQ(distinct(axis("/policies/mps/parameters/filler_percentage", "[30, 60]")),
            (Distinct{1, 1, 1}));
}

TEST(BaselineKeys, WhatAGateTakesChangesNone) {
  const auto gated = baseline_keys(Json::parse(
      R"({"gate": {"ask": "1us", "tell": "1us"}, "fillers": [{"name": "a"}]})"));
  const auto free = baseline_keys(Json::parse(R"({"fillers": [{"name": "a"}]})"));
  EXPECT_EQ(gated.training, free.training);
  EXPECT_EQ(gated.fillers, free.fillers);
}

TEST(BaselineKeys, AFillerChangesItsOwn) {
  EXPECT_EQ(distinct(axis("/fillers/0/gpus", "[[0], [1]]")), (Distinct{1, 2, 1}));
  EXPECT_EQ(distinct(axis("/fillers/0/max_batch", "[1, 2]")), (Distinct{1, 2, 1}));
}

TEST(BaselineKeys, SeedsAndLengthsChangeAllButBubbles) {
  for (const char* place : {"/seed", "/training/jitter_cv"}) {
    EXPECT_EQ(distinct(axis(place, "[1, 2]")), (Distinct{2, 2, 1})) << place;
  }
  for (const char* place : {"/duration", "/warmup"}) {
    EXPECT_EQ(distinct(axis(place, R"(["50ms", "60ms"])")), (Distinct{2, 2, 1})) << place;
  }
  EXPECT_EQ(distinct(axis("/training/memory", R"(["1GB", "2GB"])")), (Distinct{2, 2, 1}));
  EXPECT_EQ(distinct(axis("/training/stragglers", R"([[], [{"rank": 0, "slowdown": 2}]])")),
            (Distinct{2, 2, 1}));
}

TEST(BaselineKeys, TheDeviceChangesAll) {
  EXPECT_EQ(distinct(axis("/device", R"(["h100", "h200"])")), (Distinct{2, 2, 2}));
}

TEST(BaselineKeys, OtherFillersAndPlacesInTheListDoNotMix) {
  const auto keys = baseline_keys(Json::parse(R"({"fillers": [{"name": "a"}, {"name": "b"}]})"));
  const auto fewer = baseline_keys(Json::parse(R"({"fillers": [{"name": "a"}]})"));
  const auto moved = baseline_keys(Json::parse(R"({"fillers": [{"name": "b"}]})"));
  EXPECT_EQ(keys.training, fewer.training);
  EXPECT_EQ(keys.fillers[0], fewer.fillers[0]);
  EXPECT_NE(keys.fillers[1], moved.fillers[0]);
  EXPECT_EQ(keys.fillers[0].size(), 32U);
}

TEST(BaselineKeys, ByContentFollowTheFiles) {
  const Folder folder;
  const auto keys_of = [&](const std::string& table) {
    folder.write("table.csv", table);
    const auto keys = baseline_keys_now(
        R"({"seed": 1, "fillers": [{"name": "a", "program": {"kernel_table": "table.csv"}}]})",
        folder.path(""), kSource + "/configs");
    EXPECT_TRUE(keys) << texts(keys.error());
    return *keys;
  };
  const run::BaselineKeys first = keys_of("1"), again = keys_of("1"), other = keys_of("2");
  EXPECT_EQ(first.fillers, again.fillers);
  EXPECT_NE(first.fillers, other.fillers);
  EXPECT_EQ(first.training, other.training);
}

TEST(BaselineKeys, ByContentDependOnTheSeed) {
  const std::string configs = kSource + "/configs";
  EXPECT_NE(baseline_keys_now(R"({"seed": 1})", ".", configs)->training,
            baseline_keys_now(R"({"seed": 2})", ".", configs)->training);
}

// Three policies, two loads, two seeds: 12 runs; 2 jobs alone and 4 fillers.
TEST(SharedWork, GivesTheSameRecordsAsRunsThatShareNothing) {
  const Folder folder;
  const auto plan = plan_of(
      folder,
      R"([{"pointer": "/policies/0", "values": ["time_slicing", "pipefill", "specinf"]},
          {"pointer": "/fillers/batch/requests_per_pass", "values": [1, 2]}])",
      R"(, "repetitions": 2, "set": {"/training/jitter_cv": 0.1})");
  ASSERT_TRUE(plan) << texts(plan.error());
  const auto registry = policies::builtin_policies();
  SharedWork all(kDeviceFolder);
  for (const store::PlannedRun& run : plan->runs) {
    SharedWork none(kDeviceFolder);
    store::RunRecord own = execute_run(run, registry, options(1), none);
    store::RunRecord shared = execute_run(run, registry, options(1), all);
    EXPECT_EQ(own.reason, "");
    own.cpu = shared.cpu = {};
    own.finished_unix_ns = shared.finished_unix_ns = 0;
    EXPECT_EQ(encode(own), encode(shared));
  }
  EXPECT_EQ(all.baselines.training.made().count, 2U);
  EXPECT_EQ(all.baselines.fillers.made().count, 4U);
  EXPECT_EQ(all.baselines.bubbles.made().count, 1U);
}

// An arrival file without arrivals: found when the filler runs alone.
TEST(SharedWork, AFailingBaselineFailsEachRunThatNeedsItAlike) {
  const Folder folder;
  folder.write("none.csv", "\n");
  const auto plan = plan_of(
      folder, R"([{"pointer": "/policies/0", "values": ["exclusive", "time_slicing", "specinf"]}])",
      R"(, "set": {"/fillers/batch/mode": "online",
                   "/fillers/batch/arrivals":
                       {"process": "file", "format": "gaps", "path": "none.csv"}})");
  ASSERT_TRUE(plan) << texts(plan.error());
  const auto registry = policies::builtin_policies();
  SharedWork all(kDeviceFolder);
  for (const store::PlannedRun& run : plan->runs) {
    SharedWork none(kDeviceFolder);
    const store::RunRecord own = execute_run(run, registry, options(1), none);
    const store::RunRecord shared = execute_run(run, registry, options(1), all);
    EXPECT_EQ(own.status, store::RunStatus::kFailed);
    EXPECT_THAT(own.reason, HasSubstr("none.csv"));
    EXPECT_EQ(own.reason, shared.reason);
  }
  EXPECT_EQ(all.baselines.fillers.made().count, 1U);
}

}  // namespace
}  // namespace bubblesim::sweep
