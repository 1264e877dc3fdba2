// A sweep that is killed or interrupted and started again ends as if nothing had happened.
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "tests/conformance/sweep/sweep_place.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;
using InterruptedSweep = AtWorkplace;

constexpr const char* kRunEvent = R"("event":"run")";
/// Part of a progress event: one run at least has started.
constexpr const char* kRunInFlight = R"("running":[{)";

std::string undisturbed(const Workplace& place) {
  const Outcome whole = succeed(place, "sweep sweep.json --threads 2 --store whole.db");
  return exported(place, "whole.db");
}

// Each start gets further by what it stored, if it lived long enough to store something. A run that
// was in flight at three of the kills counts as failed until it is asked for once more.
TEST_F(InterruptedSweep, KilledAtRandomMomentsEndsWithTheSameExport) {
  write_sweep(place, small_sweep(8));  // 16 runs
  const std::string expected = undisturbed(place);
  std::random_device entropy;
  const unsigned seed = entropy();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int kill = 0; kill < 5; ++kill) {
    RunningProgram sweep(place, "killed", "sweep sweep.json --threads 2 --store runs.db --json");
    if (kill % 2 == 0) (void)sweep.says(kRunEvent, 1 + random() % 8);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    sweep.send(SIGKILL);
    (void)sweep.wait();
  }
  const Outcome last =
      place.bubblesim("sweep sweep.json --threads 2 --store runs.db --json --retry-failed");
  ASSERT_EQ(last.code, 0) << last.err;
  const Json end = last_event(last.out);
  EXPECT_EQ(end["stored"].get<int>() + end["done"].get<int>(), 16) << last.out;
  EXPECT_EQ(exported(place, "runs.db"), expected);
  EXPECT_EQ(place.bubblesim("results runs.db check").code, 0);
}

TEST_F(InterruptedSweep, CtrlCEndsTheRunsInFlightStoresThemAndExitsWith130) {
  write_sweep(place, small_sweep(8));
  RunningProgram sweep(place, "stopped", "sweep sweep.json --threads 2 --store runs.db --json");
  ASSERT_TRUE(sweep.says(kRunEvent));
  sweep.send(SIGINT);
  const Outcome stopped = sweep.wait();
  const Json end = last_event(stopped.out);
  if (stopped.code == 0) GTEST_SKIP() << "the sweep was done before it could be stopped";
  ASSERT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_EQ(end["event"], "stopped");
  EXPECT_EQ(end["done"].get<int>() + end["left"].get<int>(), 16);
  const Outcome rest = succeed(place, "sweep sweep.json --threads 2 --store runs.db --json");
  EXPECT_EQ(last_event(rest.out)["stored"], end["done"]) << "what was in flight was stored too";
  EXPECT_EQ(exported(place, "runs.db"), undisturbed(place));
}

// The second Ctrl-C drops what is in flight: a run of 3,000 simulated seconds takes seconds.
TEST_F(InterruptedSweep, ASecondCtrlCEndsAtOnceAndKeepsWhatWasFinished) {
  Json sweep = small_sweep(1);
  sweep["base"]["duration"] = "3000s";
  write_sweep(place, sweep);
  RunningProgram program(place, "stopped", "sweep sweep.json --threads 2 --store runs.db --json");
  ASSERT_TRUE(program.says(kRunInFlight));
  program.send(SIGINT);
  ASSERT_TRUE(program.says(R"("event":"stopping")"));
  program.send(SIGINT);
  const Outcome stopped = program.wait();
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("stopped at once; what was finished is stored"));
  EXPECT_EQ(place.bubblesim("results runs.db check").code, 0);
}

}  // namespace
}  // namespace bubblesim::app_test
