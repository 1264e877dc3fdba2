// Plans of a small run: the golden job's rank 0 (A, B, an all-reduce, C) by itself, and fillers of
// one kernel.
#include <gmock/gmock.h>

#include <filesystem>

#include "capture/replay/job_files.hpp"
#include "sim/measure/job_plans.hpp"
#include "sim/measure/measure.hpp"
#include "sim/program/rules.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/simulation.hpp"
#include "tests/fault.hpp"
#include "tests/golden/filling/small_job.hpp"
#include "tests/unit/sim/measure/plan_player.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::measure {
namespace {

using namespace std::chrono_literals;
using capture::JobPlan;
using testing::AllOf, testing::HasSubstr;
using workload::ProgramMaker;

run::LoadedRun lone(const std::vector<run::FillerConfig>& fillers) {
  return *run::lone_rank(run::small_run(fillers), 0);
}

std::string fault_of(const run::LoadedRun& run, const PlanSetup& setup = {}) {
  return error_of(job_plans(run, setup)).text();
}

TEST(JobPlans, StepsAndOperationsAreTheProgramsOwn) {
  const JobPlan plan = plan_of_program(ProgramMaker(2)
                                           .iteration(0)
                                           .kernel(1, 10)
                                           .cost(2)
                                           .launch_lag(3)
                                           .kernel(4, 20, 1)
                                           .gap(5)
                                           .after(0, 6)
                                           .wait_op(7, 1, 8)
                                           .end(9)
                                           .program(),
                                       workload::plain_gpu());
  ASSERT_EQ(plan.program.threads.size(), 1U);
  const auto& steps = plan.program.threads.front().steps;
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[0].kind, program::StepKind::kIteration);
  EXPECT_EQ(steps[1].kind, program::StepKind::kLaunch);
  EXPECT_EQ(steps[1].think.duration(), 1us);
  EXPECT_EQ(steps[1].cost.duration(), 2us);
  EXPECT_EQ(steps[1].count, 1U);
  EXPECT_EQ(steps[2].target, 1U);
  EXPECT_EQ(steps[3].kind, program::StepKind::kWaitOp);
  EXPECT_EQ(program::return_lag(plan.program, steps[3]), 8us);
  EXPECT_EQ(steps[4].kind, program::StepKind::kEnd);
  ASSERT_EQ(plan.program.ops.size(), 2U);
  EXPECT_EQ(plan.program.ops[0].launch_lag.duration(), 3us);
  EXPECT_EQ(plan.program.ops[1].duration, 20us);
  EXPECT_EQ(plan.program.ops[1].gap.duration(), 5us);
  EXPECT_EQ(plan.program.ops[1].stream, 1U);
  ASSERT_EQ(plan.program.edges.size(), 1U);
  EXPECT_EQ(plan.program.edges[0].before, 0U);
  EXPECT_EQ(plan.program.edges[0].lag.duration(), 6us);
  EXPECT_EQ(plan.program.ops[1].edge_count, 1U);
  EXPECT_EQ(plan.forms.size(), 1U);
  EXPECT_EQ(plan.program.own_kernels, program::OwnKernels::kAsRecorded);
}

// Rank 0 waits 1 ms for rank 1, then both exchange for 1 ms.
TEST(JobPlans, TrainingIsALoopWhoseCollectivesWaitForNobody) {
  const run::LoadedRun run = lone({});
  const auto job = must(training_plan(run, {}));
  const JobPlan& plan = job.plan;
  EXPECT_EQ(plan.name, "training rank 0");
  EXPECT_EQ(plan.client, ClientId{0});
  ASSERT_EQ(plan.program.ops.size(), 4U);
  EXPECT_EQ(plan.program.ops[2].kind, program::WorkKind::kCollective);
  EXPECT_EQ(plan.program.ops[2].duration, 2ms);
  EXPECT_EQ(plan.forms[plan.program.ops[2].profile].shape.blocks(), 20U);
  EXPECT_EQ(plan.program.names[plan.program.ops[3].name], "C");
  EXPECT_EQ(plan.memory, Bytes{10'000'000'000});
  ASSERT_TRUE(plan.loop);
  EXPECT_EQ(plan.loop->iterations, 0U);
  EXPECT_FALSE(plan.serve);
}

TEST(JobPlans, AStragglersOwnKernelsAreSlower) {
  run::LoadedRun run = lone({});
  run.config.training.stragglers = {{0, 1.5}};
  const auto job = must(training_plan(run, {}));
  EXPECT_EQ(job.plan.program.ops[0].duration, 1500us);
  EXPECT_EQ(job.plan.program.ops[2].duration, 2ms);
}

TEST(JobPlans, ReportWhatThePolicyNeeds) {
  const run::LoadedRun run = lone({});
  policy::PolicySpec spec;
  spec.needs = {.bubbles = true, .completions = true};
  const schedule::BubbleTable bubbles{{3, {2ms, Bytes{5}, true}}};
  const std::vector<policy::ClientSharing> shares{{100, 7, 12}};
  const auto job = must(training_plan(run, {&spec, &shares, &bubbles}));
  EXPECT_TRUE(job.plan.report_completions);
  EXPECT_EQ(job.plan.priority, 7);
  EXPECT_EQ(job.plan.sms, 12U);
  ASSERT_EQ(job.plan.bubbles.size(), 1U);
  EXPECT_EQ(job.plan.bubbles[0].after_op, 3U);
  EXPECT_EQ(job.plan.bubbles[0].info.expected, 2ms);
  EXPECT_TRUE(job.plan.bubbles[0].info.pipeline);
  spec.needs.bubbles = false;
  EXPECT_TRUE(training_plan(run, {&spec, nullptr, &bubbles})->plan.bubbles.empty());
}

TEST(JobPlans, RequestsArriveAsInASimulation) {
  run::LoadedRun run = lone({run::online("service", 2000)});
  run.config.fillers[0].batching.max_batch = 4;
  run.config.fillers[0].batching.max_wait = 1ms;
  run.config.fillers[0].batching.batch_cost = 0.5;
  const auto jobs = must(job_plans(run, {}));
  const capture::ServeMode& serve = *jobs[1].plan.serve;
  EXPECT_EQ(serve.batching.max_batch, 4U);
  EXPECT_EQ(serve.batching.max_wait, 1ms);
  EXPECT_EQ(serve.batching.batch_cost, 0.5);
  EXPECT_GT(serve.arrivals.size(), 30U);
  EXPECT_LE(serve.arrivals.back(), 70ms);
  run.config.policies = {run::choice("mps")};
  const observe::RunReport report = run::report_of(run);
  EXPECT_EQ(report.policies.front().fillers.front().requests_arrived, serve.arrivals.size());
}

TEST(JobPlans, AreFit) {
  const run::LoadedRun run = lone({run::online("service", 100), run::offline("batch")});
  const auto jobs = must(job_plans(run, {}));
  for (const PlannedJob& job : jobs) {
    const auto read = capture::parse_job_plan(capture::job_plan_bytes(job.plan), "plan");
    EXPECT_TRUE(read) << read.error().front().text();
  }
  EXPECT_EQ(jobs[2].plan.client, ClientId{2});
  EXPECT_FALSE(jobs[2].plan.serve->online);
  EXPECT_EQ(jobs[2].plan.role, policy::Role::kOffline);
}

TEST(JobPlans, WhatARealGpuCannotRunIsNamed) {
  EXPECT_THAT(fault_of(run::small_run({})),
              AllOf(HasSubstr("/training"), HasSubstr("has 2 ranks")));
  run::LoadedRun jitter = lone({});
  jitter.config.training.jitter_cv = 0.1;
  EXPECT_THAT(fault_of(jitter), HasSubstr("/training/jitter_cv"));
  run::LoadedRun continuous = lone({run::offline("llm")});
  continuous.fillers = {run::LoadedFiller{{}, {}, synth::ServerPlan{}}};
  EXPECT_THAT(fault_of(continuous),
              AllOf(HasSubstr("/fillers/0/program"), HasSubstr("\"llm\" batches continuously")));
  run::LoadedRun jobs = lone({run::offline("queue")});
  jobs.config.fillers[0].mode = observe::FillerMode::kJobs;
  EXPECT_THAT(fault_of(jobs), AllOf(HasSubstr("/fillers/0/jobs"), HasSubstr("fill jobs")));
  run::LoadedRun placed = lone({run::offline("anywhere")});
  placed.config.fillers[0].instances = 1;
  policy::PolicySpec spec;
  spec.name = "placing";
  spec.make_placer = [](const policy::ParameterSet&) -> std::unique_ptr<policy::Placer> {
    return nullptr;
  };
  EXPECT_THAT(fault_of(placed, {.spec = &spec}), HasSubstr("policy placing places"));
  EXPECT_TRUE(job_plans(placed, {}));
  run::LoadedRun endless = lone({run::online("service", 10)});
  endless.config.duration.reset();
  EXPECT_THAT(fault_of(endless), HasSubstr("have no end"));
}

// Profiles to forms and back.

const hardware::GpuSpec kGpu = golden::small_gpu();

TEST(KernelForms, ARecordedShapeIsKept) {
  const traces::LaunchShape shape{{7, 3, 2}, {32, 4, 1}, 40, 2048};
  const auto profile =
      program::profile_kernel({42, 128, 40, 2048}, program::KernelClass::kMemory, kGpu);
  const capture::KernelForm form = form_of(profile, &shape, "vectorized_elementwise", kGpu);
  EXPECT_EQ(form.shape, shape);
  EXPECT_EQ(form.bound, program::KernelClass::kMemory);
  EXPECT_FALSE(form.tensor);
  EXPECT_EQ(form.dram_share, profile.dram_share);
  EXPECT_EQ(form.issue_share, profile.issue_share);
}

TEST(KernelForms, WithoutAShapeTheBlocksAndTheirResidencyAreTheSame) {
  for (const std::uint32_t threads : {32U, 100U, 256U, 1024U}) {
    for (const std::uint32_t registers : {0U, 16U, 64U, 255U}) {
      const auto profile = program::profile_kernel({1000, threads, registers, 3000},
                                                   program::KernelClass::kCompute, kGpu);
      const capture::KernelForm form = form_of(profile, nullptr, "sgemm_128", kGpu);
      EXPECT_TRUE(form.tensor);
      EXPECT_EQ(form.shape.blocks(), 1000U);
      const program::KernelProfile back = profile_of(form, kGpu);
      EXPECT_EQ(back.blocks, profile.blocks);
      EXPECT_EQ(back.residency.blocks_per_sm, profile.residency.blocks_per_sm)
          << threads << " threads of " << registers << " registers";
      EXPECT_EQ(back.residency.warps, profile.residency.warps);
      EXPECT_EQ(back.kernel_class, profile.kernel_class);
      EXPECT_EQ(back.dram_share, profile.dram_share);
      EXPECT_EQ(back.issue_share, profile.issue_share);
    }
  }
}

// CUDA's grid.x ends at 2^31 - 1: 3 * 2^31 blocks are four rows of 3 * 2^29.
TEST(KernelForms, AGridTooLongForOneDimensionHasTwo) {
  program::KernelProfile profile =
      program::profile_kernel({1, 32, 16, 0}, program::KernelClass::kUnknown, kGpu);
  profile.blocks = std::uint64_t{3} << 31U;
  EXPECT_EQ(shape_of(profile, kGpu).blocks(), profile.blocks);
}

TEST(KernelForms, AShapeThatIsNotTheProfilesIsNotTaken) {
  const traces::LaunchShape shape{{9, 1, 1}, {32, 1, 1}, 16, 0};
  const auto profile =
      program::profile_kernel({42, 128, 40, 0}, program::KernelClass::kUnknown, kGpu);
  EXPECT_EQ(form_of(profile, &shape, "kernel", kGpu).shape.blocks(), 42U);
}

// What is known before anything starts, of the pairs that the campaign measures.

const std::filesystem::path kConfigFolder = BUBBLESIM_SOURCE_DIR "/configs";

run::LoadedRun load_pair(const std::filesystem::path& file) {
  const auto config = run::read_run_config(file.string(), run::registry());
  EXPECT_TRUE(config) << file;
  const auto loaded = run::load_run(*config, (kConfigFolder / "devices").string(), {});
  EXPECT_TRUE(loaded) << file;
  return *run::lone_rank(*loaded, 0);
}

std::vector<std::string> texts(const Errors& faults) {
  std::vector<std::string> texts;
  for (const Error& fault : faults) texts.push_back(fault.text());
  return texts;
}

TEST(Measurable, EveryPolicyOfEveryPairOfTheCampaignIsOnAGpu) {
  const capture::RigPlace gpu;
  int pairs = 0;
  for (const auto& file : std::filesystem::directory_iterator(kConfigFolder / "measure")) {
    if (file.path().extension() != ".json") continue;
    ++pairs;
    const run::LoadedRun pair = load_pair(file.path());
    EXPECT_THAT(texts(check_measurable(pair, run::registry(), gpu)), testing::IsEmpty()) << file;
  }
  EXPECT_GT(pairs, 0);
}

TEST(Measurable, MemoryThatDoesNotFitBesideTrainingIsNotOnAGpu) {
  run::LoadedRun pair =
      load_pair(kConfigFolder / "measure/vgg19-dp--resnet50-online--tgs.json");
  pair.device.memory = Bytes{1};
  EXPECT_THAT(texts(check_measurable(pair, run::registry(), {})),
              testing::Contains(testing::HasSubstr("policy tgs: leaves memory of jobs off")));
}

TEST(Measurable, PowerIsTheAdministrators) {
  run::LoadedRun pair = load_pair(kConfigFolder / "measure/gpt2-pp--encoder-online.json");
  pair.config.power.emplace().cap_w = 300;
  EXPECT_THAT(texts(check_measurable(pair, run::registry(), {})),
              testing::ElementsAre(testing::HasSubstr("/power: a GPU's cap and clock are set by "
                                                      "its administrator (nvidia-smi -pl, -lgc)")));
}

// The job runner of a rig on the fake GPU, without gate: a rank of the sample job takes what it
// takes in the simulator, and a service serves what it serves there.

capture::JobRecord run_alone(const hardware::GpuSpec& spec, const capture::JobPlan& plan) {
  const Played played = play(spec, {{plan}}).front();
  EXPECT_EQ(played.fault, "");
  return played.record;
}

TEST(JobRunnerOnTheFakeGpu, ARankTakesWhatItTakesInTheSimulator) {
  const run::LoadedRun single = sample_rank(1, 6);
  const auto expected = must(run::Simulation(single, {}).run());
  const auto job = must(training_plan(single, {}));
  const capture::JobRecord record = run_alone(single.device, job.plan);
  EXPECT_EQ(record.iterations, ends_of(expected.training.ranks.front().times));
}

// Requests that arrive when they do in the simulation wait and are served as long as there.
TEST(JobRunnerOnTheFakeGpu, AServiceServesWhatItServesInTheSimulator) {
  run::LoadedRun loaded = *run::lone_rank(run::small_run({run::online("service", 1500)}), 0);
  loaded.config.fillers[0].batching.max_batch = 3;
  loaded.config.fillers[0].batching.max_wait = 400us;
  loaded.config.fillers[0].batching.batch_cost = 0.25;
  run::RunScenario scenario;
  scenario.training = false;
  scenario.fillers = {0};
  const auto simulated = must(run::Simulation(loaded, scenario).run());
  const observe::FillerResult& expected = simulated.fillers.front();
  const auto job = must(filler_plan(loaded, 0, ClientId{1}, {}));
  const capture::JobRecord record = run_alone(loaded.device, job.plan);
  std::vector<Duration> latencies;
  for (const capture::RequestRecord& request : record.requests) {
    if (request.end <= 70ms) latencies.push_back(request.end - request.arrival);
  }
  EXPECT_GT(latencies.size(), 30U);
  EXPECT_EQ(latencies, expected.latency.samples());
}

}  // namespace
}  // namespace bubblesim::measure
