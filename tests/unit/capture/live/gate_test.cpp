// An unchanged program at the real gate: the shared object in it, a policy that PolicyHost drives
// here.
#include <gmock/gmock.h>

#include <thread>

#include "capture/live/live_folder.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/live/job_run.hpp"
#include "tests/unit/capture/live/scripted_policy.hpp"
#include "tests/unit/capture/live/wait_for.hpp"

namespace bubblesim::capture {
namespace {

using program::WorkKind;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

/// Jobs at the gate of the scripted policy.
class Gated : public ScriptedHost {
 public:
  using ScriptedHost::ScriptedHost;

  [[nodiscard]] Variables variables(std::uint32_t client) const {
    Variables made = driver_environment(scratch.path("driver"));
    made["LD_PRELOAD"] = GATE_LIBRARY;
    made[kEnvGate] = host->gate_name();
    made[kEnvGateClient] = std::to_string(client);
    made[kEnvGateFolder] = live->path();
    made[kEnvGateCompletions] = "1";
    return made;
  }
  [[nodiscard]] std::vector<std::string> job(std::vector<std::string> words) const {
    words.insert(words.begin(), LIVE_JOB);
    return words;
  }
  /// Runs a job to its end.
  [[nodiscard]] int run(const Variables& variables, std::vector<std::string> words) const {
    return RunningJob(job(std::move(words)), variables).wait();
  }
  [[nodiscard]] int run(std::uint32_t client, std::vector<std::string> words) const {
    return run(variables(client), std::move(words));
  }
  [[nodiscard]] std::vector<std::string> reached() const {
    return driver_calls(scratch.path("driver"));
  }
  [[nodiscard]] bool hears(std::size_t launches) const {
    return becomes_true([&] { return policy.launches() >= launches; });
  }

  const TempFolder scratch;
  const std::unique_ptr<LiveFolder> live = must(LiveFolder::make(scratch.path(), 2));
};

TEST(Gate, AHeldLaunchWaitsUntilThePolicyReleasesIt) {
  Gated gate;
  RunningJob job(gate.job({"v2", "launch:2", "copy:1"}), gate.variables(1));
  ASSERT_TRUE(gate.hears(1));
  EXPECT_THAT(gate.reached(), IsEmpty());
  gate.policy.let_go(1);
  ASSERT_TRUE(gate.hears(2));
  EXPECT_THAT(gate.reached(), ElementsAre("cuLaunchKernel"));
  gate.policy.let_go(kAllLaunches);
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(gate.reached(),
              ElementsAre("cuLaunchKernel", "cuLaunchKernel", "cuMemcpyHtoDAsync_v2"));
  EXPECT_EQ(gate.live->counts(1).kernels, 2U);
  EXPECT_EQ(gate.live->counts(1).copies, 1U);
  EXPECT_GE(gate.live->counts(1).held, 2U);
}

TEST(Gate, ThePolicyHearsOfLaunchesAsTheyAre) {
  Gated gate;
  gate.policy.let_go(kAllLaunches);
  EXPECT_EQ(gate.run(1, {"chain", "configured:1", "graph:1", "nccl:1", "memset:1", "exit:3"}), 3);
  ASSERT_TRUE(gate.hears(4));
  const auto heard = gate.policy.heard().launches;
  EXPECT_EQ(heard[0].blocks, 6U);
  EXPECT_EQ(heard[0].threads_per_block, 128U);
  EXPECT_EQ(heard[1].operations, 3U);
  EXPECT_EQ(heard[1].blocks, 30U);
  EXPECT_EQ(heard[2].kind, WorkKind::kCollective);
  EXPECT_EQ(heard[3].kind, WorkKind::kMemset);
  for (std::size_t i = 0; i < heard.size(); ++i) {
    EXPECT_EQ(heard[i].launch, i + 1);
    EXPECT_EQ(heard[i].client, ClientId{1});
  }
}

TEST(Gate, TrainingTellsAndDoesNotWait) {
  Gated gate;  // which holds whatever asks
  EXPECT_EQ(gate.run(0, {"v2", "launch:5"}), 0);
  EXPECT_TRUE(gate.hears(5));
  EXPECT_EQ(gate.reached().size(), 5U);
}

// 10 launches, each with a query of 2 ms before it and an event of 2 ms behind it.
TEST(Gate, WhatTheGateCostsIsTheWholeHook) {
  Gated gate;
  Variables variables = gate.variables(0);
  variables["FAKE_DRIVER_SIDE_US"] = "2000";
  EXPECT_EQ(gate.run(variables, {"v2", "launch:10"}), 0);
  EXPECT_GE(gate.live->counts(0).passing_ns, 40'000'000U);
}

TEST(Gate, AnOperationsEndIsToldOnceForEachOfItsLaunch) {
  Gated gate;
  // The graph has three kernels. It goes on, so that its ends are seen however late.
  RunningJob job(gate.job({"v2", "launch:1", "graph:1", "pace:0"}), gate.variables(0));
  ASSERT_TRUE(becomes_true([&] { return gate.policy.heard().completions.size() >= 5; }));
  const auto ends = gate.policy.heard().completions;
  EXPECT_EQ(ends[0].launch, 1U);
  for (const std::size_t i : {1, 2, 3}) EXPECT_EQ(ends[i].launch, 2U);
  EXPECT_EQ(ends[4].launch, 3U);
  EXPECT_EQ(gate.live->counts(0).completions_guessed, 0U);
}

TEST(Gate, AWindowLimitsWhatIsOnTheDevice) {
  Gated gate(1);
  gate.policy.let_go(kAllLaunches);
  Variables variables = gate.variables(1);
  variables["FAKE_DRIVER_KERNEL_US"] = "5000";
  EXPECT_EQ(gate.run(variables, {"v2", "launch:6"}), 0);
  EXPECT_TRUE(gate.hears(6));
  EXPECT_EQ(gate.policy.heard().most_outstanding, 1U);
}

// Two all-reduces of a process wait for each other on two GPUs: neither ends before both are there.
TEST(Gate, AWindowLeavesCollectivesOut) {
  Gated gate(1);
  gate.policy.let_go(kAllLaunches);
  Variables variables = gate.variables(1);
  variables["FAKE_DRIVER_KERNEL_US"] = "300000";
  EXPECT_EQ(gate.run(variables, {"v2", "nccl:1", "custom:1", "launch:1"}), 0);
  EXPECT_EQ(gate.live->counts(1).collectives, 2U);
  EXPECT_EQ(gate.live->counts(1).window_waits, 0U);
}

TEST(Gate, IterationsThatAProgramMarksAreHeard) {
  Gated gate;
  EXPECT_EQ(gate.run(0, {"v2", "iterations:3"}), 0);
  EXPECT_TRUE(becomes_true([&] { return gate.policy.heard().iterations.size() == 3; }));
  EXPECT_EQ(gate.policy.heard().iterations[2].number, 3U);
}

TEST(Gate, AForkedChildGoesUngatedAndIsNamed) {
  Gated gate;
  gate.policy.let_go(kAllLaunches);
  EXPECT_EQ(gate.run(1, {"dlsym", "launch:1", "fork:2", "launch:1"}), 0);
  EXPECT_EQ(gate.reached().size(), 4U);
  EXPECT_TRUE(gate.hears(2));
  EXPECT_EQ(gate.live->counts(1).ungated_processes, 1U);
  EXPECT_THAT(gate.live->notes(), testing::Contains(HasSubstr("(live_job) goes ungated")));
  EXPECT_EQ(gate.policy.launches(), 2U);
}

TEST(Gate, AProcessThatExitsLeavesItsPlaceToTheNext) {
  Gated gate;
  gate.policy.let_go(kAllLaunches);
  const std::string command = std::string(LIVE_JOB) + " dlsym launch:2";
  RunningJob job({"/bin/sh", "-c", command + " && " + command}, gate.variables(1));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_TRUE(gate.hears(4));
  EXPECT_EQ(gate.live->counts(1).processes, 2U);
  EXPECT_EQ(gate.live->counts(1).ungated_processes, 0U);
}

// Rank 0 launches first, on GPU 0; the filler and rank 1 are on GPU 1.
TEST(Gate, TheRankOnTheFillersGpuIsTheClient) {
  Gated gate(0, false);
  gate.policy.let_go(kAllLaunches);
  const auto on_gpu = [&](std::uint32_t client, const char* gpu, const char* verb) {
    Variables variables = gate.variables(client);
    variables["FAKE_DRIVER_GPU"] = gpu;
    return std::make_unique<RunningJob>(gate.job({"v2", verb, "sleep:300"}), variables);
  };
  const auto rank0 = on_gpu(0, "0", "pace:200");
  EXPECT_TRUE(becomes_true([&] { return gate.reached().size() >= 5; }));
  EXPECT_EQ(gate.policy.launches(), 0U);  // the gate does not know its GPU yet
  const auto filler = on_gpu(1, "1", "launch:2");
  ASSERT_TRUE(gate.hears(2));
  const auto rank1 = on_gpu(0, "1", "launch:3");
  ASSERT_TRUE(gate.hears(5));
  for (const auto& job : {&rank0, &filler, &rank1}) EXPECT_EQ((*job)->wait(), 0);
  EXPECT_EQ(gate.policy.launches(), 5U);
  EXPECT_EQ(gate.live->counts(0).kernels, 3U);
  EXPECT_EQ(gate.live->counts(0).processes, 1U);
  EXPECT_EQ(gate.live->counts(0).processes_elsewhere, 1U);
  EXPECT_EQ(gate.live->counts(0).ungated_processes, 0U);
}

// A process of three GPUs, two of which have a gate and a filler.
TEST(Gate, AProcessOfSeveralGpusAsksAtTheGateOfEach) {
  Gated first(0, false), second(0, false);
  first.policy.let_go(kAllLaunches), second.policy.let_go(kAllLaunches);
  std::vector<std::unique_ptr<RunningJob>> fillers;
  for (Gated* const gate : {&first, &second}) {
    Variables variables = gate->variables(1);
    variables["CUDA_VISIBLE_DEVICES"] = gate == &first ? "4" : "6";
    fillers.push_back(
        std::make_unique<RunningJob>(gate->job({"v2", "launch:1", "sleep:300"}), variables));
    ASSERT_TRUE(gate->hears(1));
  }
  Variables variables = first.variables(0);
  variables["CUDA_VISIBLE_DEVICES"] = "4,5,6";
  variables[kEnvGate] += "\n" + second.host->gate_name();
  variables[kEnvGateFolder] += "\n" + second.live->path();
  RunningJob training(first.job({"v2", "gpu:2", "launch:3", "gpu:0", "launch:2", "gpu:1",
                                 "launch:4", "gpu:2", "launch:1"}), variables);
  EXPECT_EQ(training.wait(), 0);
  EXPECT_TRUE(first.hears(3) && second.hears(5));
  EXPECT_EQ(first.live->counts(0).kernels, 2U);
  EXPECT_EQ(second.live->counts(0).kernels, 4U);  // device 2 is the GPU of number 6
  EXPECT_EQ(first.live->counts(0).processes_elsewhere, 1U);
  EXPECT_EQ(second.live->counts(0).processes_elsewhere, 0U);
  for (const auto& filler : fillers) EXPECT_EQ(filler->wait(), 0);
}

// As torchrun does it: a worker is killed with work on the GPU, and started again.
TEST(Gate, ARestartedWorkerIsGatedAndItsPredecessorsWorkHasEnded) {
  Gated gate;
  Variables variables = gate.variables(0);
  variables["FAKE_DRIVER_KERNEL_US"] = "60000000";
  const std::string command = std::string(LIVE_JOB) + " dlsym launch:2 ";
  RunningJob job({"/bin/sh", "-c", command + "kill; " + command + "sleep:1000"}, variables);
  EXPECT_TRUE(becomes_true([&] { return gate.policy.heard().completions.size() == 2; }));
  EXPECT_TRUE(gate.hears(4));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(gate.live->counts(0).processes, 2U);
  EXPECT_EQ(gate.live->counts(0).ungated_processes, 0U);
}

TEST(Gate, AProcessThatBecomesAnotherProgramKeepsItsPlace) {
  Gated gate;
  gate.policy.let_go(kAllLaunches);
  EXPECT_EQ(gate.run(1, {"dlsym", "launch:1", "exec", "launch:2", "exec", "launch:1"}), 0);
  EXPECT_TRUE(gate.hears(4));
  EXPECT_EQ(gate.live->counts(1).processes, 1U);
  EXPECT_EQ(gate.live->counts(1).ungated_processes, 0U);
  EXPECT_EQ(gate.live->counts(1).undecided, 0U);
}

// Its threads end with the exec, where they wait.
TEST(Gate, WhatAThreadAskedBeforeAnExecIsWithdrawn) {
  Gated gate;  // which holds whatever asks
  RunningJob job(gate.job({"dlsym", "iterations:0", "thread:1", "sleep:100", "exec", "launch:1"}),
                 gate.variables(1));
  ASSERT_TRUE(becomes_true([&] {
    return gate.live->notes().size() == 2 && gate.policy.launches() >= 1;
  }));
  EXPECT_THAT(gate.reached(), IsEmpty());
  gate.policy.let_go(kAllLaunches);
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(gate.reached(), ElementsAre("cuLaunchKernel"));
  EXPECT_EQ(gate.live->counts(1).ungated_processes, 0U);
}

TEST(Gate, AProcessThatExitsWhileAThreadIsHeldLeavesItsPlaceToo) {
  Gated gate;  // which holds whatever asks
  const std::string command = std::string(LIVE_JOB) + " dlsym iterations:0 ";
  RunningJob job({"/bin/sh", "-c", command + "thread:1 sleep:100 && " + command + "launch:1"},
                 gate.variables(1));
  ASSERT_TRUE(becomes_true([&] { return gate.live->counts(1).processes == 2; }));
  gate.policy.let_go(kAllLaunches);
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(gate.live->counts(1).ungated_processes, 0U);
  EXPECT_GE(gate.reached().size(), 1U);  // or 2: the thread goes on while its process exits
}

// What the thread had at the gate is given back before static objects are destroyed.
TEST(Gate, LaunchesOfStaticDestructorsGoOnUngated) {
  Gated gate(2);
  gate.policy.let_go(1);
  EXPECT_EQ(gate.run(1, {"dlsym", "launch:1", "late:3"}), 0);
  EXPECT_EQ(gate.reached().size(), 4U);
  EXPECT_EQ(gate.policy.launches(), 1U);
  EXPECT_EQ(gate.live->counts(1).undecided, 3U);
}

TEST(Gate, ADriverThatAProgramClosesStaysForTheGate) {
  Gated gate;
  gate.policy.let_go(kAllLaunches);
  EXPECT_EQ(gate.run(1, {"dlsym", "launch:1", "reopen", "launch:1"}), 0);
  EXPECT_EQ(gate.reached().size(), 2U);
}

TEST(Gate, AnotherInterposerBeforeOrBehindTheGateGoesOnToTheDriver) {
  const std::string gate_library = GATE_LIBRARY, other = SECOND_INTERPOSER;
  for (const std::string& preloaded : {gate_library + ":" + other, other + ":" + gate_library}) {
    Gated gate;
    gate.policy.let_go(kAllLaunches);
    Variables variables = gate.variables(1);
    variables["LD_PRELOAD"] = preloaded;
    RunningJob job({LIVE_JOB_LINKED, "linked", "launch:3"}, variables);
    EXPECT_EQ(job.wait(), 0) << preloaded;
    EXPECT_EQ(gate.reached().size(), 3U) << preloaded;
    EXPECT_TRUE(gate.hears(3)) << preloaded;
  }
}

// Kernels of a minute are under way, and the gate has events behind them.
TEST(Gate, AContextThatEndsTakesItsEventsAlong) {
  for (const char* verb : {"destroy", "reset"}) {
    Gated gate;
    Variables variables = gate.variables(0);
    variables["FAKE_DRIVER_KERNEL_US"] = "60000000";
    EXPECT_EQ(gate.run(variables, {"dlsym", "launch:2", "sleep:50", verb, "sleep:100"}), 0) << verb;
    EXPECT_EQ(gate.policy.heard().completions.size(), 2U) << verb;
  }
}

TEST(Gate, AProgramThatClearsItsEnvironmentMeanwhileIsGatedStill) {
  Gated gate;
  gate.policy.let_go(kAllLaunches);
  EXPECT_EQ(gate.run(1, {"dlsym", "clear", "launch:2"}), 0);
  EXPECT_TRUE(gate.hears(2));
  EXPECT_EQ(gate.live->counts(1).kernels, 2U);
}

TEST(Gate, ThatTheHostClosesLetsEveryLaunchGo) {
  Gated gate;
  RunningJob job(gate.job({"v2", "launch:3"}), gate.variables(1));
  ASSERT_TRUE(gate.hears(1));
  gate.stop();
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(gate.reached().size(), 3U);
  EXPECT_EQ(gate.live->counts(1).undecided, 3U);
}

TEST(Gate, OfWhichThereIsNoneLetsEveryLaunchGoAndSaysSo) {
  Gated gate;
  Variables variables = gate.variables(1);
  variables[kEnvGate] = "bubblesim.gate.that.is.not.there";
  EXPECT_EQ(RunningJob(gate.job({"v2", "launch:3"}), variables).wait(), 0);
  EXPECT_EQ(gate.reached().size(), 3U);
  EXPECT_THAT(gate.live->notes(), ElementsAre(HasSubstr("goes ungated")));
}

}  // namespace
}  // namespace bubblesim::capture
