// Plans of a small run: the golden job's rank 0 (A, B, an all-reduce, C) by itself, and fillers of
// one kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/replay/job_files.hpp"
#include "policies/builtin.hpp"
#include "sim/measure/job_plans.hpp"
#include "sim/program/rules.hpp"
#include "sim/run/lone_rank.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::measure {
namespace {

using namespace std::chrono_literals;
using capture::JobPlan;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using workload::ProgramMaker;

run::LoadedRun lone(const std::vector<run::FillerConfig>& fillers) {
  return *run::lone_rank(run::small_run(fillers), 0);
}

std::string fault_of(const run::LoadedRun& run, const PlanSetup& setup = {}) {
  const auto plans = job_plans(run, setup);
  EXPECT_FALSE(plans);
  return plans ? "" : plans.error().text();
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
  const auto job = training_plan(run, {});
  ASSERT_TRUE(job) << job.error().text();
  const JobPlan& plan = job->plan;
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
  const auto job = training_plan(run, {});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->plan.program.ops[0].duration, 1500us);
  EXPECT_EQ(job->plan.program.ops[2].duration, 2ms);
}

TEST(JobPlans, ReportWhatThePolicyNeeds) {
  const run::LoadedRun run = lone({});
  policy::PolicySpec spec;
  spec.needs = {.bubbles = true, .completions = true};
  const schedule::BubbleTable bubbles{{3, {2ms, Bytes{5}, true}}};
  const std::vector<policy::ClientSharing> shares{{100, 7, 12}};
  const auto job = training_plan(run, {&spec, &shares, &bubbles});
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->plan.report_completions);
  EXPECT_EQ(job->plan.priority, 7);
  EXPECT_EQ(job->plan.sms, 12U);
  ASSERT_EQ(job->plan.bubbles.size(), 1U);
  EXPECT_EQ(job->plan.bubbles[0].after_op, 3U);
  EXPECT_EQ(job->plan.bubbles[0].info.expected, 2ms);
  EXPECT_TRUE(job->plan.bubbles[0].info.pipeline);
  spec.needs.bubbles = false;
  EXPECT_TRUE(training_plan(run, {&spec, nullptr, &bubbles})->plan.bubbles.empty());
}

TEST(JobPlans, RequestsArriveAsInASimulation) {
  run::LoadedRun run = lone({run::online("service", 2000)});
  run.config.fillers[0].batching.max_batch = 4;
  run.config.fillers[0].batching.max_wait = 1ms;
  run.config.fillers[0].batching.batch_cost = 0.5;
  const auto jobs = job_plans(run, {});
  ASSERT_TRUE(jobs) << jobs.error().text();
  const capture::ServeMode& serve = *(*jobs)[1].plan.serve;
  EXPECT_EQ(serve.batching.max_batch, 4U);
  EXPECT_EQ(serve.batching.max_wait, 1ms);
  EXPECT_EQ(serve.batching.batch_cost, 0.5);
  EXPECT_GT(serve.arrivals.size(), 30U);
  EXPECT_LE(serve.arrivals.back(), 70ms);
  const policy::Registry registry = policies::builtin_policies();
  run.config.policies = {run::choice("mps", registry)};
  const auto report = run::run_policies(run, registry, {});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->policies.front().fillers.front().requests_arrived, serve.arrivals.size());
}

TEST(JobPlans, AreFit) {
  const run::LoadedRun run = lone({run::online("service", 100), run::offline("batch")});
  const auto jobs = job_plans(run, {});
  ASSERT_TRUE(jobs);
  for (const PlannedJob& job : *jobs) {
    const auto read = capture::parse_job_plan(capture::job_plan_bytes(job.plan), "plan");
    EXPECT_TRUE(read) << read.error().front().text();
  }
  EXPECT_EQ((*jobs)[2].plan.client, ClientId{2});
  EXPECT_FALSE((*jobs)[2].plan.serve->online);
  EXPECT_EQ((*jobs)[2].plan.role, policy::Role::kOffline);
}

TEST(JobPlans, WhatARealGpuCannotRunIsNamed) {
  EXPECT_THAT(fault_of(run::small_run({})),
              AllOf(HasSubstr("/training"), HasSubstr("has 2 ranks")));
  run::LoadedRun jitter = lone({});
  jitter.config.training.jitter_cv = 0.1;
  EXPECT_THAT(fault_of(jitter), HasSubstr("/training/jitter_cv"));
  run::LoadedRun continuous = lone({run::offline("llm")});
  continuous.servers = {Shared<synth::ServerPlan>(synth::ServerPlan{})};
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

}  // namespace
}  // namespace bubblesim::measure
