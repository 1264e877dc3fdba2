// bubblesim measure: real processes on a fake GPU give what a simulation gives; what cannot be
// measured is said before anything starts.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <tuple>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr;
using Calibrate = AtWorkplace;

constexpr const char* kConfig = R"({
  "name": "pair", "seed": 3, "duration": "600ms", "warmup": "100ms",
  "training": {"trace": "traces/samples/training", "memory": "24GB"},
  "fillers": [
    {"name": "online", "mode": "online", "memory": "2GB", "deadline": "100ms",
     "program": {"trace": "traces/samples/inference.json.gz"},
     "requests_per_pass": 8, "max_batch": 8, "max_wait": "5ms",
     "arrivals": {"process": "poisson", "rate_per_s": 200}},
    {"name": "offline", "mode": "offline", "memory": "2GB",
     "program": {"trace": "traces/samples/inference.json.gz"}}],
  "gate": {"ask": "0ns", "tell": "0ns"},
  "policies": [POLICIES]
})";

/// With the members of `policies` as they stand in JSON.
std::string with_policies(const std::string& policies) {
  std::string text = kConfig;
  return text.replace(text.find("POLICIES"), 8, policies);
}

/// A priority that changes is simulated only: the gate of a fake GPU cannot change it.
std::string config_of(const std::string& names) {
  if (names != "specinf") return with_policies('"' + names + '"');
  return with_policies(R"({"name": "specinf", "parameters": {"priority": "fixed"}})");
}

Json results(const Workplace& place, const std::string& path) {
  return parse_json(place.read(path));
}

class Measured : public testing::TestWithParam<const char*> {};

TEST_P(Measured, OnAFakeGpuIsWhatASimulationGives) {
  const Workplace place;
  place.write("pair.json", config_of(GetParam()));
  const Outcome run = place.bubblesim("run pair.json --lone-rank 0 --out simulated");
  const Outcome measured = place.bubblesim("measure pair.json --fake --out measured");
  ASSERT_EQ(run.code, 0) << run.err;
  ASSERT_EQ(measured.code, 0) << measured.err;
  const Json wanted = results(place, "simulated/results.json");
  const Json found = results(place, "measured/results.json");
  EXPECT_EQ(found["measured"]["place"], "fake");
  for (const char* key : {"config", "seed", "device", "ranks", "world_size"}) {
    EXPECT_EQ(found[key], wanted[key]) << key;
  }
  EXPECT_EQ(found["baseline"]["training_iteration_mean_ns"],
            wanted["baseline"]["training_iteration_mean_ns"]);
  const Json& policy = found["policies"][0];
  const Json& simulated = wanted["policies"][0];
  EXPECT_EQ(policy["training"], simulated["training"]);
  EXPECT_EQ(policy["activity"]["holds"], simulated["activity"]["holds"]);
  for (const std::size_t filler : {0, 1}) {
    EXPECT_EQ(policy["fillers"][filler], simulated["fillers"][filler]);
  }
  EXPECT_GT(policy["host"]["decisions"], 0);  // on a fake GPU training asks
  EXPECT_GT(policy["activity"]["calls"], 1000);
}

/// Of the rows of a table of operations: the fourth cell from the end.
std::set<std::string> kernel_starts(const std::string& table) {
  std::set<std::string> starts;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(",kernel,") == std::string::npos) continue;
    std::size_t end = line.size();
    for (int cell = 0; cell < 3; ++cell) end = line.rfind(',', end - 1);
    const std::size_t begin = line.rfind(',', end - 1) + 1;
    starts.insert(line.substr(begin, end - begin));
  }
  return starts;
}

// Two ways to the same times: what the processes recorded of themselves, and the timeline that a
// simulation draws.
TEST(MeasuredOperations, OfAFakeGpuAreThoseOfASimulatedTimeline) {
  const Workplace place;
  place.write("pair.json", config_of("mps"));
  const Outcome run = place.bubblesim(
      "run pair.json --lone-rank 0 --timeline timeline.json --timeline-policy mps "
      "--timeline-window 200ms");
  const Outcome measured = place.bubblesim("measure pair.json --fake --operations ops");
  ASSERT_EQ(run.code, 0) << run.err;
  ASSERT_EQ(measured.code, 0) << measured.err;
  std::set<std::string> drawn;
  const Json timeline = parse_json(place.read("timeline.json"));
  for (const Json& event : timeline["traceEvents"]) {
    if (event.value("cat", "") != "kernel") continue;
    drawn.insert(std::to_string(std::llround(event["ts"].get<double>() * 1e3)));
  }
  ASSERT_GT(drawn.size(), 1000U);
  EXPECT_TRUE(std::ranges::includes(kernel_starts(place.read("ops/mps.csv")), drawn));
  for (const char* alone : {"ops/alone.csv", "ops/online-alone.csv", "ops/offline-alone.csv"}) {
    EXPECT_THAT(place.read(alone), HasSubstr(",kernel,")) << alone;
  }
}

// Its figures must not be trusted, as those of a simulation.
TEST(Measured, TrainingThatEndsNoIterationIsAnError) {
  const Workplace place;
  std::string text = config_of("green_context");
  text.replace(text.find("600ms"), 5, "240ms");
  place.write("pair.json", text);
  for (const char* command : {"run pair.json --lone-rank 0", "measure pair.json --fake"}) {
    const Outcome outcome = place.bubblesim(command);
    EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("! error: run_training_without_iteration: "));
  }
}

class NearlyMeasured : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Policies, Measured,
                         testing::Values("exclusive", "time_slicing", "mps", "mig",
                                         "stream_priority", "green_context", "gpreempt", "tgs",
                                         "antman", "specinf", "dilu", "freeride", "vcuda",
                                         "xsched"));

// PipeFill: a job hears of the end after which a bubble begins by the device's notice, as an engine
// that executes an instruction there does; the simulator's bubble begins with the end itself.
// Orion: how long a filler's pass takes is the mean of what was measured, not the first pass.
TEST_P(NearlyMeasured, WhatIsKnownBeforehandIsMeasuredToo) {
  const Workplace place;
  place.write("pair.json", with_policies(GetParam()));
  const Outcome run = place.bubblesim("run pair.json --lone-rank 0 --json");
  const Outcome measured = succeed(place, "measure pair.json --fake --json");
  const Json wanted = parse_json(run.out)["policies"][0];
  const Json found = parse_json(measured.out)["policies"][0];
  const double simulated = wanted["training"]["iteration_mean_ns"];
  EXPECT_NEAR(found["training"]["iteration_mean_ns"].get<double>(), simulated, 1e-3 * simulated);
  for (const std::size_t filler : {0, 1}) {
    EXPECT_EQ(found["fillers"][filler]["passes"], wanted["fillers"][filler]["passes"]);
  }
}

// PipeFill takes turns here, since a gate leaves the driver's slices alone.
INSTANTIATE_TEST_SUITE_P(
    Policies, NearlyMeasured,
    testing::Values(R"({"name": "pipefill", "parameters": {"main_job": "takes_turns"}})",
                    R"("orion")"));

class MeasureTest : public AtWorkplace {};

TEST_F(MeasureTest, SeveralRoundsAreFilesOfTheirOwn) {
  place.write("pair.json", config_of("mps"));
  const Outcome measured = succeed(place, "measure pair.json --fake --rounds 2 --out out/m");
  const Json first = results(place, "out/m/results-1.json");
  const Json second = results(place, "out/m/results-2.json");
  EXPECT_EQ(first["measured"]["round"], 1);
  EXPECT_EQ(second["measured"]["round"], 2);
  EXPECT_EQ(first["policies"], second["policies"]);
}

TEST_F(MeasureTest, SeveralRoundsAsJsonAreAList) {
  place.write("pair.json", config_of("exclusive"));
  const Json found = parse_json(place.bubblesim("measure pair.json --fake --rounds 2 --json").out);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1]["measured"]["round"], 2);
}

TEST_F(MeasureTest, ABoundedWindowKeepsLaunchesOfAFillerBack) {
  place.write("pair.json", config_of("mps"));
  const Outcome measured = succeed(place, "measure pair.json --fake --window 1 --json");
  const Outcome free = place.bubblesim("measure pair.json --fake --json");
  const auto passes = [](const Outcome& outcome) {
    return parse_json(outcome.out)["policies"][0]["fillers"][1]["passes"].get<int>();
  };
  EXPECT_LT(passes(measured), passes(free));
}

// What asking costs is a round trip on a real GPU; a fake one always lets training ask.
TEST_F(MeasureTest, TrainingAsksOnAFakeGpuWhetherToldToOrNot) {
  place.write("pair.json", config_of("mps"));
  const auto decisions = [&](const std::string& options) {
    const Json found = json_of(place, "measure pair.json --fake --json" + options);
    return found["policies"][0]["host"]["decisions"].get<int>();
  };
  EXPECT_EQ(decisions(" --ask-training"), decisions(""));
}

TEST_F(MeasureTest, WhatNoGpuCanDoIsSaidBeforeAnythingStarts) {
  place.write("pair.json", config_of("ideal\", \"mps\", \"ideal_spatial"));
  expect_fault(place, "measure pair.json --fake",
               AllOf(HasSubstr("policy ideal: is a bound that no GPU reaches"),
                     HasSubstr("policy ideal_spatial: is a bound that no GPU reaches")));
}

TEST_F(MeasureTest, WhatCannotBeMeasuredIsAFault) {
  for (const auto& [policy, options, fault] :
       {std::tuple{"pipefill", "", "policy pipefill: sets time slices while jobs run"},
        {"tally", "", "policy tally: illegal decision at "},
        {"mps", " --rank 7", "7"},
        {"mps", " --worker nowhere/replay", "nowhere/replay: found no such command"}}) {
    place.write("pair.json", config_of(policy));
    expect_fault(place, std::string("measure pair.json --fake") + options, HasSubstr(fault));
  }
}

// bubblesim calibrate: a fake GPU's constants as a device file that reads back; what is wrong with
// a call is said before anything starts.

TEST_F(Calibrate, WhatAFakeGpuIsLikeBecomesADeviceFile) {
  const Outcome made = place.bubblesim(
      "calibrate --fake --device h100 --fake-device a100-80gb --only latencies,copies "
      "-o mine.json --json");
  ASSERT_EQ(made.code, 0) << made.err;
  const Json constants = parse_json(made.out)["constants"];
  ASSERT_EQ(constants.size(), 6U);
  for (const Json& constant : constants) {
    EXPECT_FALSE(constant["measured"].is_null()) << constant["constant"];
  }
  const Json h100 = parse_json(place.read("mine.json"));
  EXPECT_THAT(h100["launch_latency"]["source"].get<std::string>(),
              HasSubstr("measured: bubblesim calibrate --fake"));
  EXPECT_THAT(h100["time_slice"]["source"].get<std::string>(),
              HasSubstr("tests/validation/h100/calibrate.txt"));
  // The file is a device again, with what was measured; nothing is left to find.
  const Outcome again = place.bubblesim(
      "calibrate --fake --device mine.json --fake-device a100-80gb --only latencies --json");
  ASSERT_EQ(again.code, 0) << again.err;
  const Json found = parse_json(again.out)["constants"];
  for (const Json& constant : found) {
    EXPECT_EQ(constant["measured"], constant["base"]) << constant["constant"];
  }
}

TEST_F(Calibrate, SlowdownsAreARowACell) {
  const Outcome made =
      place.bubblesim("calibrate --fake --only contention --residuals residuals.csv");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("held out, never fitted"));
  EXPECT_THAT(place.read("residuals.csv"), HasSubstr("victim_class,victim_blocks"));
}

TEST_F(Calibrate, UnknownProbesAndDevicesAreNamed) {
  expect_fault(place, "calibrate --fake --only slice", HasSubstr("slices"));
  expect_fault(place, "calibrate --fake --device h1000", HasSubstr("h1000"));
}

}  // namespace
}  // namespace bubblesim::app_test
