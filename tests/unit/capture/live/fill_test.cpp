// Two programs under a policy, and what becomes of one when the other ends. Signals to the tool:
// tests/conformance/app/fill_test.cpp.
#include <gmock/gmock.h>

#include <csignal>
#include <thread>

#include "capture/live/run_fill.hpp"
#include "tests/unit/capture/live/job_run.hpp"
#include "tests/unit/capture/live/scripted_policy.hpp"
#include "tests/unit/capture/live/wait_for.hpp"
#include "tests/unit/capture/substrate/mps_script.hpp"

namespace bubblesim::capture {
namespace {

using testing::Contains, testing::HasSubstr;

std::string job(const std::string& words) { return std::string(LIVE_JOB) + " v2 " + words; }

struct Filled {
  TempFolder scratch;
  ScriptedPolicy policy;
  policy::PolicySpec spec = scripted_spec();
  FillSetup setup;
  std::vector<std::string> said;

  Filled(const std::string& train, const std::string& fill) {
    setup.train = train;
    setup.gpus = {{.device = {}, .fill = fill, .policy = &policy, .plan = {}}};
    setup.spec = &spec;
    setup.gpus[0].plan.shares.resize(2);
    setup.environment = driver_environment(scratch.path("driver"));
    setup.library = GATE_LIBRARY;
    setup.folder = scratch.path();
    setup.fill_log = scratch.path("filler");
    setup.say = [this](const std::string& text) { said.push_back(text); };
    policy.let_go(kAllLaunches);
  }
  FillReport run() {
    auto report = run_fill(setup);
    EXPECT_TRUE(report) << report.error().text();
    FillReport nothing;
    nothing.gpus.resize(1);
    return report ? std::move(*report) : nothing;
  }
};

TEST(Fill, BothRunAndAreCounted) {
  Filled two(job("launch:4 copy:1"), job("launch:3"));
  two.setup.after_end = FillerThen::kKeep;
  const FillReport report = two.run();
  EXPECT_EQ(report.gpus[0].training.end->exit_code, 0);
  EXPECT_EQ(report.gpus[0].filler.end->exit_code, 0);
  EXPECT_EQ(report.gpus[0].training.kernels, 4U);
  EXPECT_EQ(report.gpus[0].training.copies, 1U);
  EXPECT_EQ(report.gpus[0].training.blocks, 8U);
  EXPECT_EQ(report.gpus[0].filler.kernels, 3U);
  EXPECT_FALSE(report.gpus[0].fault);
}

TEST(Fill, WhatThePolicyHoldsGoesOnWhenTrainingHasEnded) {
  Filled two(job("launch:1"), job("launch:2 exit:5"));
  two.setup.after_end = FillerThen::kKeep;
  ScriptedPolicy holding;  // lets nothing go
  two.setup.gpus[0].policy = &holding;
  const FillReport report = two.run();
  EXPECT_EQ(report.gpus[0].filler.end->exit_code, 5);
  EXPECT_EQ(report.gpus[0].filler.undecided, 2U);
}

TEST(Fill, TheFillerIsToldToEndWhenTrainingHas) {
  Filled two(job("pace:20"), job("pace:0"));
  const FillReport report = two.run();
  EXPECT_EQ(report.gpus[0].training.end->exit_code, 0);
  EXPECT_TRUE(report.gpus[0].filler_stopped);
  EXPECT_FALSE(report.gpus[0].filler_killed);
  EXPECT_EQ(report.gpus[0].filler.end->signal, SIGTERM);
}

TEST(Fill, AFillerThatDoesNotEndIsKilledWithItsChildren) {
  Filled two(job("pace:20"), "trap '' TERM; " + job("pace:0") + " & wait; wait");
  two.setup.grace = std::chrono::milliseconds(300);
  // Training ends once the filler's own process launches: the trap is set by then.
  two.setup.train = "while ! grep -qs . '" + two.scratch.path("driver") + "'; do sleep 0.01; done";
  const FillReport report = two.run();
  EXPECT_TRUE(report.gpus[0].filler_killed);
  EXPECT_EQ(report.gpus[0].filler.end->signal, SIGKILL);
  const auto calls = [&] { return driver_calls(two.scratch.path("driver")).size(); };
  // Nobody launches any more: a moment without a call, however long it takes to come.
  EXPECT_TRUE(becomes_true([&] {
    const std::size_t before = calls();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return calls() == before;
  }));
}

TEST(Fill, TheFillersDeathLeavesTrainingAlone) {
  Filled two(job("pace:60 exit:0"), job("launch:3 kill"));
  const FillReport report = two.run();
  EXPECT_EQ(report.gpus[0].training.end->exit_code, 0);
  EXPECT_EQ(report.gpus[0].training.kernels, 60U);
  EXPECT_EQ(report.gpus[0].filler.end->exit_code, 128 + SIGKILL);
  EXPECT_FALSE(report.gpus[0].filler_stopped);
}

TEST(Fill, TrainingsDeathLeavesTheFillerAloneUngated) {
  Filled two(job("launch:3 kill"), job("pace:40 exit:4"));
  const FillReport report = two.run();
  EXPECT_EQ(report.gpus[0].training.end->exit_code, 128 + SIGKILL);
  EXPECT_EQ(report.gpus[0].filler.end->exit_code, 4);
  EXPECT_FALSE(report.gpus[0].filler_stopped);
  EXPECT_THAT(two.said, Contains(HasSubstr("ungated")));
}

TEST(Fill, TrainingsDeathEndsTheFillerIfTheUserSaysSo) {
  Filled two(job("launch:3 exit:9"), job("pace:0"));
  two.setup.after_death = FillerThen::kStop;
  const FillReport report = two.run();
  EXPECT_EQ(report.gpus[0].training.end->exit_code, 9);
  EXPECT_TRUE(report.gpus[0].filler_stopped);
}

// Rank 1 has twice the launches. Training begins when both fillers have launched: then the gates
// know their GPUs.
TEST(Fill, EachGpuHasAFillerAndAPolicyOfItsOwn) {
  Filled node("", "exec " + job("launch:$((BUBBLESIM_FILLER + 2)) sleep:60000"));
  ScriptedPolicy other;
  other.let_go(2);  // of the second filler's three launches
  node.setup.gpus.push_back(node.setup.gpus[0]);
  node.setup.gpus[1].policy = &other;
  node.setup.gpus[0].device = "2", node.setup.gpus[1].device = "5";
  node.setup.one_gpu = false;
  node.setup.train = "until [ \"$(grep -c '^[0-9]* cuLaunchKernel' '" +
                     node.scratch.path("driver") + "')\" = 4 ]; do sleep 0.01; done " +
                     "2>/dev/null; FAKE_DRIVER_GPU=1 " + job("launch:8 sleep:300") + " & " +
                     job("launch:4 sleep:300") + "; wait";
  const FillReport report = node.run();
  ASSERT_EQ(report.gpus.size(), 2U);
  EXPECT_EQ(report.gpus[0].training.kernels, 4U);
  EXPECT_EQ(report.gpus[1].training.kernels, 8U);
  EXPECT_EQ(report.gpus[0].filler.kernels, 2U);
  EXPECT_GE(report.gpus[1].filler.kernels, 2U);  // 3: the gate opens when training ends
  for (const FillGpuReport& gpu : report.gpus) {
    EXPECT_EQ(gpu.training.end->exit_code, 0);
    EXPECT_EQ(gpu.training.processes, 1U);
    EXPECT_EQ(gpu.training.ungated_processes, 0U);
    EXPECT_TRUE(gpu.filler_stopped);
    EXPECT_FALSE(gpu.fault);
  }
  EXPECT_EQ(other.launches(), 11U);  // 8 of training's, 3 of the filler's
}

// The daemon shows GPUs 2 and 5 to its clients as 0 and 1.
TEST(Fill, UnderMpsEachProgramSeesItsGpusByTheNumbersOfTheDaemon) {
  Filled node("", "");
  const auto file = [&](const std::string& name) { return node.scratch.path(name); };
  const std::string say = "echo $CUDA_VISIBLE_DEVICES >";
  node.setup.train = say + file("training") + "; sleep 0.2";
  node.setup.gpus[0].fill = say + file("filler") + "$BUBBLESIM_FILLER";
  node.setup.gpus[0].plan.sharing = policy::SharingMode::kMps;
  node.setup.gpus.push_back(node.setup.gpus[0]);
  ScriptedPolicy other;
  node.setup.gpus[1].policy = &other;
  node.setup.gpus[0].device = "2", node.setup.gpus[1].device = "5";
  node.setup.after_end = FillerThen::kKeep;
  write_mps_program(node.scratch.path(), mps_script(kQuitsWhenTold, say + file("daemon")));
  node.setup.environment["PATH"] = node.scratch.path() + ":/usr/bin:/bin";
  EXPECT_EQ(node.run().gpus.size(), 2U);
  EXPECT_THAT(lines_of_file(file("daemon")), testing::ElementsAre("2,5"));
  EXPECT_THAT(lines_of_file(file("training")), testing::ElementsAre("0,1"));
  EXPECT_THAT(lines_of_file(file("filler0")), testing::ElementsAre("0"));
  EXPECT_THAT(lines_of_file(file("filler1")), testing::ElementsAre("1"));
}

TEST(Fill, AWarningIsSaidBeforeTheFillerRuns) {
  Filled two(job("pace:20"), job("launch:1"));
  two.setup.gpus[0].plan.warning = "one fault domain";
  two.run();
  ASSERT_FALSE(two.said.empty());
  EXPECT_EQ(two.said.front(), "one fault domain");
}

TEST(Fill, TheFillerHasNoInputAndItsOutputGoesToItsLog) {
  Filled two("sleep 0.2", "cat; echo done");
  two.setup.after_end = FillerThen::kKeep;
  EXPECT_EQ(two.run().gpus[0].filler.end->exit_code, 0);
  EXPECT_THAT(lines_of_file(two.scratch.path("filler")), testing::ElementsAre("done"));
}

TEST(Fill, ALogThatCannotBeWrittenIsAFaultAndNothingRuns) {
  Filled two("true", "true");
  two.setup.train = "touch '" + two.scratch.path("ran") + "'";
  two.setup.fill_log = "/no/such/folder/log";
  const auto report = run_fill(two.setup);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text(), HasSubstr("/no/such/folder/log"));
  EXPECT_TRUE(lines_of_file(two.scratch.path("ran")).empty());
}

}  // namespace
}  // namespace bubblesim::capture
