// What a run's key depends on: content, and nothing else.
#include <gmock/gmock.h>

#include <set>

#include "policies/builtin.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/run_key.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::HasSubstr;

class RunKey : public testing::Test {
 protected:
  RunKey() {
    folder_.write("a.btr", "trace");
    for (const char* name : {"devices", "efficiency", "models", "plans", "clusters", "software"}) {
      std::filesystem::create_directory(folder_.path(name));
    }
    folder_.write("devices/h100.json", "h");
    folder_.write("efficiency/h100.json", "e");
    folder_.write("models/m.json", "m");
    folder_.write("plans/p.json", R"({"software": "s", "routing": {"shares": "k.csv"}})");
    folder_.write("plans/k.csv", "k");
    folder_.write("clusters/c.json", R"({"device": {"value": "h100"}})");
    folder_.write("software/s.json", "s");
    folder_.write("software/pytorch.json", "p");
  }

  std::string key(const std::string& config, std::uint64_t seed = 1,
                  const std::string& version = "1") {
    FileHashes files;
    const auto content = run_content(Json::parse(config), folder_.path(""), files);
    EXPECT_TRUE(content) << texts(content.error());
    return content ? run_key(*content, seed, version) : "";
  }
  std::string fault(const std::string& config) {
    FileHashes files;
    const auto content = run_content(Json::parse(config), folder_.path(""), files);
    return content ? "" : texts(content.error());
  }
  [[nodiscard]] std::string recorded(const std::string& file) const {
    return R"({"training": {"trace": ")" + folder_.path(file) + R"("}, "x": 1})";
  }

  const std::string synth_ =
      R"({"training": {"synth": {"model": "m", "plan": "p", "cluster": "c"}}})";
  Folder folder_;
};

// XXH3-128 of no bytes, as the library's own tests have it.
TEST_F(RunKey, IsTheKnownHash) { EXPECT_EQ(hash_text(""), "99aa06d3014798d86001c324468d497f"); }

// What reads the folder skips them, too.
TEST_F(RunKey, LeavesHiddenFilesOfAFolderOut) {
  std::filesystem::create_directory(folder_.path("ranks"));
  folder_.write("ranks/rank0.json", "trace");
  const std::string before = key(recorded("ranks"));
  folder_.write("ranks/._rank0.json", "of an archive");
  EXPECT_EQ(key(recorded("ranks")), before);
  folder_.write("ranks/rank1.json", "trace");
  EXPECT_NE(key(recorded("ranks")), before);
}

TEST_F(RunKey, IsTheSameWhereverTheTraceLiesAndHoweverTheConfigIsWritten) {
  folder_.write("b.btr", "trace");
  EXPECT_EQ(key(recorded("a.btr")), key(recorded("b.btr")));
  const std::string turned =
      R"({ "x": 1, "training": {"trace": ")" + folder_.path("a.btr") + R"("}, "seed": 9})";
  EXPECT_EQ(key(recorded("a.btr")), key(turned));  // the seed is given apart
}

TEST_F(RunKey, ChangesWithContentSeedAndVersion) {
  const std::string config = recorded("a.btr");
  const std::string before = key(config);
  EXPECT_NE(key(config, 2), before);
  EXPECT_NE(key(config, 1, "2"), before);
  folder_.write("a.btr", "tracf");
  EXPECT_NE(key(config), before);
}

TEST_F(RunKey, AFolderIsItsNamesAndContents) {
  std::filesystem::create_directory(folder_.path("job"));
  folder_.write("job/0.btr", "x");
  const std::string before = key(recorded("job"));
  folder_.write("job/1.btr", "");
  EXPECT_NE(key(recorded("job")), before);
  std::filesystem::rename(folder_.path("job/1.btr"), folder_.path("job/2.btr"));
  const std::string second = key(recorded("job"));
  std::filesystem::remove(folder_.path("job/2.btr"));
  EXPECT_NE(second, key(recorded("job")));
  EXPECT_EQ(key(recorded("job")), before);
}

TEST_F(RunKey, ChangesWithEveryFileThatTheConfigLeadsTo) {
  std::string last = key(synth_);
  for (const char* file : {"models/m.json", "plans/p.json", "plans/k.csv", "clusters/c.json",
                           "software/s.json", "devices/h100.json", "efficiency/h100.json"}) {
    std::ofstream(folder_.path(file), std::ios::app) << " ";
    const std::string now = key(synth_);
    EXPECT_NE(now, last) << file;
    last = now;
  }
}

TEST_F(RunKey, DoesNotChangeWithOtherFiles) {
  const std::string before = key(synth_);
  folder_.write("models/other.json", "o");
  folder_.write("devices/other.json", "o");
  EXPECT_EQ(key(synth_), before);
}

// The recorded GPU's name is looked for in all of them.
TEST_F(RunKey, ATraceWithoutADeviceDependsOnAllDevices) {
  const std::string before = key(recorded("a.btr"));
  folder_.write("devices/other.json", "o");
  EXPECT_NE(key(recorded("a.btr")), before);
}

TEST_F(RunKey, NamesWhatIsNotThere) {
  EXPECT_THAT(fault(R"({"training": {"synth": {"model": "n", "plan": "p", "cluster": "c"}}})"),
              HasSubstr("/training/synth/model: unknown model \"n\""));
  EXPECT_THAT(fault(recorded("none")), HasSubstr("/training/trace: there is no file or folder"));
}

TEST_F(RunKey, AFileIsReadOnce) {
  FileHashes files;
  const auto before = files.hash(folder_.path("a.btr"));
  folder_.write("a.btr", "changed");
  EXPECT_EQ(*files.hash(folder_.path("a.btr")), *before);
}

// Which runs of a sweep share what their parts do alone, and that nobody sees it in the results.

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
    return must(baseline_keys_now(
        R"({"seed": 1, "fillers": [{"name": "a", "program": {"kernel_table": "table.csv"}}]})",
        folder.path(""), kSource + "/configs"));
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
  const auto plan = must(plan_of(
      folder,
      R"([{"pointer": "/policies/0", "values": ["time_slicing", "pipefill", "specinf"]},
          {"pointer": "/fillers/batch/requests_per_pass", "values": [1, 2]}])",
      R"(, "repetitions": 2, "set": {"/training/jitter_cv": 0.1})"));
  const auto registry = policies::builtin_policies();
  SharedWork all(kDeviceFolder);
  for (const store::PlannedRun& run : plan.runs) {
    SharedWork none(kDeviceFolder);
    store::RunRecord own = execute_run(run, registry, options(1), none);
    store::RunRecord shared = execute_run(run, registry, options(1), all);
    EXPECT_EQ(own.reason, "");
    own.cpu = shared.cpu = {};
    own.finished_unix_ns = shared.finished_unix_ns = 0;
    EXPECT_EQ(own, shared);
  }
  EXPECT_EQ(all.baselines.training.made().count, 2U);
  EXPECT_EQ(all.baselines.fillers.made().count, 4U);
  EXPECT_EQ(all.baselines.bubbles.made().count, 1U);
}

// An arrival file without arrivals: found when the filler runs alone.
TEST(SharedWork, AFailingBaselineFailsEachRunThatNeedsItAlike) {
  const Folder folder;
  folder.write("none.csv", "\n");
  const auto plan = must(plan_of(
      folder, R"([{"pointer": "/policies/0", "values": ["exclusive", "time_slicing", "specinf"]}])",
      R"(, "set": {"/fillers/batch/mode": "online",
                   "/fillers/batch/arrivals":
                       {"process": "file", "format": "gaps", "path": "none.csv"}})"));
  const auto registry = policies::builtin_policies();
  SharedWork all(kDeviceFolder);
  for (const store::PlannedRun& run : plan.runs) {
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
