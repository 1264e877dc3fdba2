// Two programs under a policy, and what becomes of one when the other ends. Signals to the tool:
// tests/conformance/app/fill_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "capture/live/run_fill.hpp"
#include "tests/unit/capture/live/job_run.hpp"
#include "tests/unit/capture/live/scripted_policy.hpp"
#include "tests/unit/capture/live/wait_for.hpp"

namespace bubblesim::capture {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string job(const std::string& words) { return std::string(LIVE_JOB) + " v2 " + words; }

struct Filled {
  ScratchFolder scratch;
  ScriptedPolicy policy;
  policy::PolicySpec spec = scripted_spec();
  FillSetup setup;
  std::vector<std::string> said;

  Filled(const std::string& train, const std::string& fill) {
    setup.train = train;
    setup.fill = fill;
    setup.spec = &spec;
    setup.policy = &policy;
    setup.clients.resize(2);
    setup.clients[1].id = ClientId{1};
    setup.clients[1].role = policy::Role::kOffline;
    setup.plan.shares.resize(2);
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
    return report ? std::move(*report) : FillReport{};
  }
};

TEST(Fill, BothRunAndAreCounted) {
  Filled two(job("launch:4 copy:1"), job("launch:3"));
  two.setup.after_end = FillerThen::kKeep;
  const FillReport report = two.run();
  EXPECT_EQ(report.training.end->exit_code, 0);
  EXPECT_EQ(report.filler.end->exit_code, 0);
  EXPECT_EQ(report.training.kernels, 4U);
  EXPECT_EQ(report.training.copies, 1U);
  EXPECT_EQ(report.training.blocks, 8U);
  EXPECT_EQ(report.filler.kernels, 3U);
  EXPECT_FALSE(report.fault);
}

TEST(Fill, WhatThePolicyHoldsGoesOnWhenTrainingHasEnded) {
  Filled two(job("launch:1"), job("launch:2 exit:5"));
  two.setup.after_end = FillerThen::kKeep;
  ScriptedPolicy holding;  // lets nothing go
  two.setup.policy = &holding;
  const FillReport report = two.run();
  EXPECT_EQ(report.filler.end->exit_code, 5);
  EXPECT_EQ(report.filler.undecided, 2U);
}

TEST(Fill, TheFillerIsToldToEndWhenTrainingHas) {
  Filled two(job("pace:20"), job("pace:0"));
  const FillReport report = two.run();
  EXPECT_EQ(report.training.end->exit_code, 0);
  EXPECT_TRUE(report.filler_stopped);
  EXPECT_FALSE(report.filler_killed);
  EXPECT_EQ(report.filler.end->signal, SIGTERM);
}

TEST(Fill, AFillerThatDoesNotEndIsKilledWithItsChildren) {
  Filled two(job("pace:20"), "trap '' TERM; " + job("pace:0") + " & wait; wait");
  two.setup.grace = std::chrono::milliseconds(300);
  // Training ends once the filler's own process launches: the trap is set by then.
  two.setup.train = "while ! grep -qs . '" + two.scratch.path("driver") + "'; do sleep 0.01; done";
  const FillReport report = two.run();
  EXPECT_TRUE(report.filler_killed);
  EXPECT_EQ(report.filler.end->signal, SIGKILL);
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
  EXPECT_EQ(report.training.end->exit_code, 0);
  EXPECT_EQ(report.training.kernels, 60U);
  EXPECT_EQ(report.filler.end->exit_code, 128 + SIGKILL);
  EXPECT_FALSE(report.filler_stopped);
}

TEST(Fill, TrainingsDeathLeavesTheFillerAloneUngated) {
  Filled two(job("launch:3 kill"), job("pace:40 exit:4"));
  const FillReport report = two.run();
  EXPECT_EQ(report.training.end->exit_code, 128 + SIGKILL);
  EXPECT_EQ(report.filler.end->exit_code, 4);
  EXPECT_FALSE(report.filler_stopped);
  EXPECT_THAT(two.said, Contains(HasSubstr("ungated")));
}

TEST(Fill, TrainingsDeathEndsTheFillerIfTheUserSaysSo) {
  Filled two(job("launch:3 exit:9"), job("pace:0"));
  two.setup.after_death = FillerThen::kStop;
  const FillReport report = two.run();
  EXPECT_EQ(report.training.end->exit_code, 9);
  EXPECT_TRUE(report.filler_stopped);
}

TEST(Fill, AWarningIsSaidBeforeTheFillerRuns) {
  Filled two(job("pace:20"), job("launch:1"));
  two.setup.plan.warning = "one fault domain";
  two.run();
  ASSERT_FALSE(two.said.empty());
  EXPECT_EQ(two.said.front(), "one fault domain");
}

TEST(Fill, TheFillerHasNoInputAndItsOutputGoesToItsLog) {
  Filled two("sleep 0.2", "cat; echo done");
  two.setup.after_end = FillerThen::kKeep;
  EXPECT_EQ(two.run().filler.end->exit_code, 0);
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
