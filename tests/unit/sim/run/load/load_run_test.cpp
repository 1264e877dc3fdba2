// A config with everything that it names: programs, device, faults of what it names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/builtin.hpp"
#include "sim/run/run_policies.hpp"

namespace bubblesim::run {
namespace {

using testing::HasSubstr;

const std::string kRoot = BUBBLESIM_SOURCE_DIR;

RunConfig config() {
  RunConfig config;
  config.file = "run.json";
  config.name = "test";
  config.iterations = 1;
  config.training.traces = {kRoot + "/traces/samples/training"};
  FillerConfig filler;
  filler.name = "encoder";
  filler.program = TraceProgram{kRoot + "/traces/samples/inference.json.gz"};
  config.fillers.push_back(filler);
  return config;
}

CheckedResult<LoadedRun> load(const RunConfig& config) {
  return load_run(config, kRoot + "/configs/devices");
}

std::string fault(const RunConfig& config) {
  const auto loaded = load(config);
  EXPECT_FALSE(loaded);
  return loaded ? "" : loaded.error().front().text();
}

TEST(LoadRun, TakesTheDeviceThatTheTraceRecorded) {
  const auto loaded = load(config());
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  EXPECT_EQ(loaded->device.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(loaded->training.ranks.size(), 4U);
  ASSERT_EQ(loaded->fillers.size(), 1U);
  EXPECT_FALSE(loaded->fillers.front().ops.empty());
  EXPECT_TRUE(loaded->recorded_mean_iteration);
}

TEST(LoadRun, TakesTheDeviceThatTheConfigNames) {
  RunConfig other = config();
  other.device = "h100";
  const auto loaded = load(other);
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  EXPECT_EQ(loaded->device.name, "NVIDIA H100 80GB HBM3");
}

TEST(LoadRun, AnUnknownDeviceListsTheKnown) {
  RunConfig other = config();
  other.device = "h10";
  EXPECT_THAT(fault(other), HasSubstr("did you mean \"h100\"?"));
}

TEST(LoadRun, AFillerOfSeveralRanksIsRefused) {
  RunConfig other = config();
  other.fillers.front().program = TraceProgram{kRoot + "/traces/samples/training"};
  EXPECT_THAT(fault(other), HasSubstr("found 4 ranks, expected one"));
}

TEST(LoadRun, RanksThatTheJobDoesNotHaveAreFaultsAllAtOnce) {
  RunConfig other = config();
  other.training.stragglers = {{9, 2.0}};
  other.fillers.front().gpus = {{0, 4}};
  const auto loaded = load(other);
  ASSERT_FALSE(loaded);
  ASSERT_EQ(loaded.error().size(), 2U);
  EXPECT_EQ(loaded.error()[0].place, "/training/stragglers/0/rank");
  EXPECT_EQ(loaded.error()[1].place, "/fillers/0/gpus");
}

}  // namespace
}  // namespace bubblesim::run
