// Which policies can decide over programs that nobody changed, and with what environment those run.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "capture/live/job_variables.hpp"
#include "capture/live/live_folder.hpp"
#include "capture/live/live_plan.hpp"
#include "policies/builtin.hpp"

namespace bubblesim::capture {
namespace {

using testing::HasSubstr;

struct Planned {
  std::unique_ptr<policy::Policy> policy;
  Result<LivePlan> plan;
};

Planned plan(const std::string& name, std::map<std::string, policy::Value> values = {},
             Substitute substitute = Substitute::kRefuse,
             policy::Role filler = policy::Role::kOffline) {
  static const policy::Registry registry = policies::builtin_policies();
  const policy::PolicySpec& spec = **registry.find(name);
  std::map<std::string, policy::Value, std::less<>> all;
  for (const auto& [key, value] : policy::defaults(spec)) all[key] = value;
  for (const auto& [key, value] : values) all[key] = value;
  const policy::ParameterSet parameters(all);
  policy::GpuInfo gpu;
  gpu.name = "H100";
  gpu.sm_count = 132;
  gpu.memory = Bytes{80'000'000'000};
  std::vector<policy::ClientInfo> clients(2);
  clients[0].name = "training";
  clients[1].id = ClientId{1};
  clients[1].role = filler;
  clients[1].name = "filler";
  Planned planned{spec.make(parameters), fail("not planned")};
  planned.plan = plan_live(spec, parameters, *planned.policy, gpu, clients, substitute);
  return planned;
}

std::string fault(const std::string& name, std::map<std::string, policy::Value> values = {}) {
  const Planned planned = plan(name, std::move(values));
  return planned.plan ? "none" : planned.plan.error().text();
}

TEST(LivePlan, PoliciesThatWatchLaunchesCanDecide) {
  for (const char* name : {"mps", "specinf", "dilu"}) {
    const Planned planned = plan(name);
    ASSERT_TRUE(planned.plan) << name << planned.plan.error().text();
    EXPECT_EQ(planned.plan->sharing, policy::SharingMode::kMps) << name;
  }
  for (const char* name : {"tgs", "xsched", "time_slicing", "antman"}) {
    const Planned planned = plan(name);
    ASSERT_TRUE(planned.plan) << name << planned.plan.error().text();
  }
  EXPECT_EQ(plan("tgs").plan->sharing, policy::SharingMode::kTimeSliced);
}

TEST(LivePlan, OthersAreRefusedByNameWithTheReason) {
  EXPECT_THAT(fault("orion"), HasSubstr("policy orion"));
  EXPECT_THAT(fault("orion"), HasSubstr("profiled durations of kernels, profiled classes"));
  EXPECT_THAT(fault("pipefill"), HasSubstr("measured bubbles"));
  EXPECT_THAT(fault("freeride"), HasSubstr("measured bubbles"));
  EXPECT_THAT(fault("reef"), HasSubstr("profiled durations"));
  EXPECT_THAT(fault("tally"), HasSubstr("profiled durations"));
  EXPECT_THAT(fault("ideal"), HasSubstr("oracle"));
  EXPECT_THAT(fault("gpreempt"), HasSubstr("time slices"));
  EXPECT_THAT(fault("exclusive"), HasSubstr("does not admit filler"));
  EXPECT_THAT(fault("mig"), HasSubstr("policy mig"));
  EXPECT_THAT(fault("green_context"), HasSubstr("policy green_context"));
  EXPECT_THAT(fault("xsched", {{"level", std::int64_t{3}}}), HasSubstr("level 3"));
  EXPECT_THAT(fault("time_slicing", {{"work_conserving", false}}), HasSubstr("work_conserving"));
}

TEST(LivePlan, StreamsOfOneProcessBecomeTimeSlicesOnlyIfTheUserSaysSo) {
  EXPECT_THAT(fault("stream_priority"), HasSubstr("--as time-sliced"));
  const Planned planned = plan("stream_priority", {}, Substitute::kTimeSliced);
  ASSERT_TRUE(planned.plan) << planned.plan.error().text();
  EXPECT_EQ(planned.plan->sharing, policy::SharingMode::kTimeSliced);
  EXPECT_THAT(planned.plan->notes.front(), HasSubstr("priorities of streams have no effect"));
}

TEST(LivePlan, TrainingWaitsForVerdictsWhereThePolicyMayHoldIt) {
  EXPECT_TRUE(plan("dilu").plan->asks_training);
  EXPECT_FALSE(plan("dilu", {{"barrier", std::string("fillers")}}).plan->asks_training);
  EXPECT_TRUE(plan("vcuda", {{"training_limit", std::int64_t{80}}}).plan->asks_training);
  EXPECT_FALSE(plan("vcuda").plan->asks_training);
}

// What the filler is started with under MPS.
Variables filler_of(const LivePlan& plan, Variables inherited) {
  return gated_environment(inherited, {1, "g", "/f", "/l", false, "/pipe", ""}, plan);
}

TEST(LivePlan, AGivenMemoryLimitIsTheFillers) {
  LivePlan given = *plan("mps", {{"filler_memory_limit_mib", std::int64_t{4096}}}).plan;
  limit_fillers(given, Bytes{80'000'000'000}, false);
  EXPECT_EQ(filler_of(given, {}).at(kMpsMemoryLimit), "0=4096M");
  EXPECT_EQ(filler_of(given, {{"CUDA_VISIBLE_DEVICES", "4,5"}}).at(kMpsMemoryLimit),
            "0=4096M,1=4096M");
  EXPECT_FALSE(gated_environment({}, {0, "g", "/f", "/l", false, "/pipe", ""}, given)
                   .contains(kMpsMemoryLimit));
}

// 80 GB less a tenth are 72 GB: 68,664 MiB.
TEST(LivePlan, AFillerWithoutALimitMayHaveWhatIsFreeLessATenth) {
  LivePlan open = *plan("specinf").plan;
  limit_fillers(open, Bytes{80'000'000'000}, false);
  EXPECT_EQ(filler_of(open, {}).at(kMpsMemoryLimit), "0=68664M");
  EXPECT_THAT(open.notes.back(), HasSubstr("the filler's memory is limited to 72GB"));
  LivePlan unknown = *plan("specinf").plan;
  limit_fillers(unknown, std::nullopt, false);
  EXPECT_FALSE(filler_of(unknown, {}).contains(kMpsMemoryLimit));
  EXPECT_THAT(unknown.notes.back(), HasSubstr("does not say what is free"));
}

TEST(LivePlan, AnInheritedMemoryLimitStays) {
  LivePlan inherited = *plan("specinf").plan;
  limit_fillers(inherited, Bytes{80'000'000'000}, true);
  const Variables made = filler_of(inherited, {{kMpsMemoryLimit, "0=8G"}});
  EXPECT_EQ(made.at(kMpsMemoryLimit), "0=8G");
}

TEST(LivePlan, WhatMpsAndTimeSlicesCannotDoIsSaid) {
  EXPECT_THAT(plan("mps").plan->warning, HasSubstr("one fault domain"));
  LivePlan sliced = *plan("tgs").plan;
  EXPECT_EQ(sliced.warning, "");
  limit_fillers(sliced, Bytes{80'000'000'000}, false);
  EXPECT_THAT(sliced.notes.back(), HasSubstr("not limited, which needs MPS"));
}

TEST(JobVariables, AGatedJobHasTheGateFirstAndNoForeignDaemon) {
  LivePlan two;
  two.shares.resize(2);
  const GatedJob job{1, "gate", "/folder", "/lib/gate.so", true, "", ""};
  const Variables made = gated_environment(
      {{"LD_PRELOAD", "other.so"}, {"CUDA_MPS_PIPE_DIRECTORY", "/theirs"}, {"A", "b"}}, job, two);
  EXPECT_EQ(made.at("LD_PRELOAD"), "/lib/gate.so:other.so");
  EXPECT_EQ(made.at("BUBBLESIM_GATE"), "gate");
  EXPECT_EQ(made.at("BUBBLESIM_GATE_CLIENT"), "1");
  EXPECT_EQ(made.at("BUBBLESIM_GATE_COMPLETIONS"), "1");
  EXPECT_NE(made.at("CUDA_MPS_PIPE_DIRECTORY"), "/theirs");
  EXPECT_EQ(made.at("A"), "b");
}

TEST(JobVariables, TheLauncherSaysHowManyRanksTheJobHas) {
  EXPECT_EQ(ranks_of_job({}), 1U);
  EXPECT_EQ(ranks_of_job({{"WORLD_SIZE", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}}), 8U);
  EXPECT_EQ(ranks_of_job({{"WORLD_SIZE", "many"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), 4U);
  EXPECT_EQ(ranks_of_job({{"WORLD_SIZE", "0"}, {"PMI_SIZE", "-3"}}), 1U);
  EXPECT_EQ(ranks_of_job({{"SLURM_STEP_NUM_TASKS", "16"}}), 16U);
}

TEST(JobVariables, SharesOfMpsAreItsEnvironment) {
  LivePlan two;
  two.sharing = policy::SharingMode::kMps;
  two.shares = {{.sm_percentage = 100, .priority = 1}, {.sm_percentage = 30, .priority = 0}};
  const Variables training = gated_environment({}, {0, "g", "/f", "/l", false, "/pipe", ""}, two);
  const Variables filler = gated_environment({}, {1, "g", "/f", "/l", false, "/pipe", ""}, two);
  EXPECT_EQ(training.at("CUDA_MPS_PIPE_DIRECTORY"), "/pipe");
  EXPECT_FALSE(training.contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
  EXPECT_FALSE(training.contains("CUDA_MPS_CLIENT_PRIORITY"));
  EXPECT_EQ(filler.at("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "30");
  EXPECT_EQ(filler.at("CUDA_MPS_CLIENT_PRIORITY"), "1");
}

TEST(JobVariables, BothProgramsSeeTheGpuThatWasAskedFor) {
  LivePlan two;
  two.shares.resize(2);
  const GatedJob asked{1, "g", "/f", "/l", false, "", "GPU-a"};
  const GatedJob inherits{1, "g", "/f", "/l", false, "", ""};
  const Variables before{{"CUDA_VISIBLE_DEVICES", "3"}};
  EXPECT_EQ(gated_environment(before, asked, two).at("CUDA_VISIBLE_DEVICES"), "GPU-a");
  EXPECT_EQ(gated_environment(before, inherits, two).at("CUDA_VISIBLE_DEVICES"), "3");
  EXPECT_FALSE(gated_environment({}, inherits, two).contains("CUDA_VISIBLE_DEVICES"));
}

TEST(JobVariables, ALibraryThatLdPreloadWouldDivideIsRefused) {
  EXPECT_TRUE(can_be_preloaded("/lib/gate.so"));
  EXPECT_THAT(can_be_preloaded("/my lib/gate.so").error().text(), HasSubstr("/my lib/gate.so"));
  EXPECT_THAT(can_be_preloaded("/a:b/gate.so").error().text(), HasSubstr("--library"));
}

// The daemon was started with the same variable, and its clients see what it sees, from 0.
TEST(JobVariables, ClientsOfMpsNumberTheGpusOfTheirDaemonFromZero) {
  LivePlan two;
  two.sharing = policy::SharingMode::kMps;
  two.shares.resize(2);
  const auto visible = [&](const std::string& inherited, const std::string& asked,
                           std::size_t place = 0) {
    const GatedJob job{1, "g", "/f", "/l", false, "/pipe", asked, place};
    return gated_environment({{"CUDA_VISIBLE_DEVICES", inherited}}, job, two)
        .at("CUDA_VISIBLE_DEVICES");
  };
  EXPECT_EQ(visible("3", ""), "0");
  EXPECT_EQ(visible("6,2,5", ""), "0,1,2");
  EXPECT_EQ(visible("6", "2"), "0");
  EXPECT_EQ(visible("", "5", 2), "2");  // a filler on the last of 2,4,5
  EXPECT_EQ(visible("GPU-a,GPU-b", ""), "GPU-a,GPU-b");
  EXPECT_EQ(visible("", ""), "");
}

// What policies are told of the GPU, from a stand-in of NVML and without one.
policy::GpuInfo constants() {
  policy::GpuInfo gpu;
  gpu.name = "a100";
  gpu.sm_count = 108;
  gpu.memory = Bytes{40'000'000'000};
  gpu.time_slice = std::chrono::milliseconds(2);
  return gpu;
}

TEST(GpuFacts, AreTheCardsWhereItSaysThem) {
  const GpuFacts facts = facts_of_gpu(constants(), "0", {}, FAKE_NVML);
  EXPECT_EQ(facts.gpu.name, "H100");
  EXPECT_EQ(facts.gpu.sm_count, 132U);
  EXPECT_EQ(facts.gpu.memory.value, 85'520'809'984U);
  EXPECT_EQ(facts.free, Bytes{80'000'000'000});
  EXPECT_EQ(facts.gpu.time_slice, std::chrono::milliseconds(2));
  EXPECT_THAT(facts.text, HasSubstr("H100, 132 SMs"));
  EXPECT_THAT(facts.text, HasSubstr("slices and bandwidths are those of a100"));
}

TEST(GpuFacts, WhatTheCardDoesNotSayIsTheDevices) {
  const GpuFacts facts = facts_of_gpu(constants(), "1", {}, FAKE_NVML);
  EXPECT_EQ(facts.gpu.sm_count, 108U);
  EXPECT_EQ(facts.gpu.memory.value, 40'000'000'000U);
  EXPECT_EQ(facts.free, std::nullopt);
  EXPECT_THAT(facts.text, HasSubstr("SMs, memory, slices and bandwidths are those of a100"));
}

TEST(GpuFacts, TheCardIsTheFirstThatIsVisibleUnlessOneIsAskedFor) {
  const Variables second{{"CUDA_VISIBLE_DEVICES", "1,0"}};
  EXPECT_EQ(facts_of_gpu(constants(), "", second, FAKE_NVML).gpu.sm_count, 108U);
  EXPECT_EQ(facts_of_gpu(constants(), "GPU-a", second, FAKE_NVML).gpu.sm_count, 132U);
  EXPECT_EQ(facts_of_gpu(constants(), "", {}, FAKE_NVML).gpu.sm_count, 132U);
}

// The stand-in has two cards.
TEST(GpuFacts, SayWhetherProgramsSeeOneGpuOnly) {
  const auto alone = [](const std::string& device, const Variables& environment) {
    return facts_of_gpu(constants(), device, environment, FAKE_NVML).is_only_one;
  };
  EXPECT_FALSE(alone("", {}));
  EXPECT_FALSE(alone("", {{"CUDA_VISIBLE_DEVICES", "1,0"}}));
  EXPECT_TRUE(alone("", {{"CUDA_VISIBLE_DEVICES", "1"}}));
  EXPECT_TRUE(alone("GPU-b", {}));
  EXPECT_TRUE(facts_of_gpu(constants(), "", {}, "/nonexistent/libnvidia-ml.so.1").is_only_one);
}

TEST(GpuFacts, WithoutADriverTheTextSaysWhoseConstantsTheyAre) {
  const GpuFacts facts = facts_of_gpu(constants(), "", {}, "/nonexistent/libnvidia-ml.so.1");
  EXPECT_EQ(facts.gpu.sm_count, 108U);
  EXPECT_THAT(facts.text, HasSubstr("a100, 108 SMs"));
  EXPECT_THAT(facts.text, HasSubstr("--device"));
}

// The folder of a run.
TEST(LiveFolder, CountsBeginAtZeroAndTheFolderGoesWithTheObject) {
  std::string path;
  {
    const auto folder = LiveFolder::make(testing::TempDir(), 2);
    ASSERT_TRUE(folder) << folder.error().text();
    path = (*folder)->path();
    EXPECT_EQ((*folder)->counts(1).kernels, 0U);
    EXPECT_THAT((*folder)->notes(), testing::IsEmpty());
    std::ofstream(path + "/" + kNotesFile) << "one\ntwo\n";
    EXPECT_THAT((*folder)->notes(), testing::ElementsAre("one", "two"));
    EXPECT_EQ(std::filesystem::file_size(path + "/client1"), sizeof(LiveCounts));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(LiveFolder, AParentThatIsNotThereIsAFault) {
  const auto folder = LiveFolder::make("/no/such/parent", 1);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().text(), testing::HasSubstr("/no/such/parent"));
}

}  // namespace
}  // namespace bubblesim::capture
