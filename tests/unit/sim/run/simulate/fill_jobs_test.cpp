// Fill jobs on the small job's two GPUs, whose every time is known by hand: a pass of the filler
// alone takes 1.1 ms.
#include <gmock/gmock.h>

#include <utility>

#include "sim/policy/parameter_check.hpp"
#include "sim/run/unmet_config.hpp"
#include "tests/bytes.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

using testing::AllOf, testing::HasSubstr;

observe::PolicyResult run_all(const LoadedRun& loaded, const policy::PolicySpec* policy = nullptr) {
  return simulate(loaded, all_of(loaded, policy));
}

TEST(FillJobs, GoToFreeGpusInOrderOfSubmission) {
  const LoadedRun loaded = small_run({queue("jobs", {{10}, {5}, {3}})});
  const observe::FillJobs jobs = *run_all(loaded).fillers.front().jobs;
  ASSERT_EQ(jobs.list.size(), 3U);
  EXPECT_EQ(jobs.list[0].gpu, GpuId{0});
  EXPECT_EQ(jobs.list[1].gpu, GpuId{1});
  EXPECT_EQ(jobs.list[2].gpu, GpuId{1});  // free when the 5 requests are done
  EXPECT_EQ(jobs.list[2].placed, *jobs.list[1].ended);
  EXPECT_EQ(jobs.submitted, 3U);
  EXPECT_EQ(jobs.finished, 3U);
  EXPECT_EQ(*jobs.makespan, *jobs.list[0].ended);
  EXPECT_EQ(*jobs.mean_completion,
            (*jobs.list[0].ended + *jobs.list[1].ended + *jobs.list[2].ended) / 3);
}

TEST(FillJobs, AreCountedWhereverTheyAreWhenTheRunEnds) {
  const LoadedRun loaded = small_run(
      {queue("jobs", {{100000}, {100000, 1ms}, {1, 2ms}, {1, 80ms}})});
  const observe::PolicyResult result = run_all(loaded);
  const observe::FillJobs& jobs = *result.fillers.front().jobs;
  EXPECT_EQ(jobs.submitted, 3U);  // the last one comes after the end, at 70 ms
  EXPECT_EQ(jobs.running, 2U);
  EXPECT_EQ(jobs.waiting, 1U);
  EXPECT_EQ(jobs.makespan, std::nullopt);
  EXPECT_EQ(jobs.mean_completion, std::nullopt);
  EXPECT_EQ(result.counters.count("run_fill_jobs_unfinished"), 3U);
  EXPECT_GT(jobs.list[0].requests_completed, 0U);
}

TEST(FillJobs, AreToldWhereTheyComeAfterTheEnd) {
  const LoadedRun loaded = small_run({queue("in_time", {{5}, {5, 69ms}}),
                                      queue("late", {{5}, {1, 80ms}, {1, 70ms}})});
  const observe::PolicyResult result = run_all(loaded);
  EXPECT_EQ(result.counters.count(kKeysWithoutEffect.name), 1U);
  EXPECT_THAT(result.notices,
              testing::ElementsAre("/fillers/1/jobs: 2 of 3 submitted at 70ms or later, the run "
                                   "ended at 70ms"));
}

TEST(FillJobs, KnowTheirDeadlines) {
  const LoadedRun loaded = small_run({queue(
      "jobs", {{2, 0ms, 69ms}, {1000, 0ms, 30ms}, {2, 1ms, 1ns}, {1000, 2ms, 100ms}})});
  const observe::FillJobs jobs = *run_all(loaded).fillers.front().jobs;
  EXPECT_EQ(jobs.deadlines_met, 1U);
  EXPECT_EQ(jobs.deadlines_missed, 2U);  // one runs beyond it, one ended later
  EXPECT_EQ(jobs.deadlines_open, 1U);    // until 102 ms
}

// 10 GB of training on 16: a job of 6 GB fits beside it, one of 7 does not and is passed over.
TEST(FillJobs, WaitForMemory) {
  LoadedRun loaded = small_run({queue("large", {{5}}), queue("small", {{5}, {5}, {5}})});
  loaded.config.fillers[0].memory = gb(7);
  loaded.config.fillers[1].memory = gb(6);
  const observe::PolicyResult result = run_all(loaded);
  EXPECT_EQ(result.fillers[0].jobs->waiting, 1U);
  EXPECT_EQ(result.fillers[1].jobs->finished, 3U);
  EXPECT_EQ(result.gpus.front().memory_high_water, gb(16));  // one worker's memory at a time
}

// The rest of the 8 GB is behind the host link: policies/resident_memory.hpp.
TEST(FillJobs, HoldOnTheDeviceWhatTrainingAndTheReserveLeave) {
  for (const std::string name : {"tgs", "antman"}) {
    LoadedRun loaded = small_run({queue("jobs", {{5}})});
    loaded.config.fillers.front().memory = gb(8);
    loaded.config.policies = {choice(name)};
    const auto report = report_of(loaded);
    EXPECT_EQ(report.policies.front().gpus.front().memory_high_water,
              Bytes{loaded.device.memory.value - (std::uint64_t{1} << 30U)})
        << name;
  }
}

TEST(FillJobs, AWorkersLastBatchMayBeSmall) {
  LoadedRun loaded = small_run({queue("jobs", {{10}})});
  loaded.config.fillers.front().batching.max_batch = 4;
  loaded.config.fillers.front().batching.requests_per_pass = 4;
  const observe::FillerResult filler = run_all(loaded).fillers.front();
  EXPECT_EQ(filler.jobs->finished, 1U);
  EXPECT_EQ(filler.passes, 3U);  // 4, 4, 2
  EXPECT_EQ(filler.requests_completed, 10U);
}

TEST(FillJobs, WorkIsTimeOnAGpuOfItsOwn) {
  FillerConfig filler;
  filler.batching.max_batch = 4;
  filler.batching.requests_per_pass = 2;
  filler.batching.batch_cost = 0.5;
  // Two full batches of two recorded passes, 15 ms each, and one request: 10 ms.
  EXPECT_EQ(work_of(9, filler, {10ms, 0}), Duration{40ms});
  EXPECT_EQ(work_of(9, filler, {Duration{}, 3}), Duration{3s});
  EXPECT_EQ(work_of(9, filler, {}), Duration{});
}

/// Places everything as told, whatever waits.
class Told final : public policy::Placer {
 public:
  explicit Told(std::vector<policy::Placement> placements) : placements_(std::move(placements)) {}
  std::vector<policy::Placement> place(std::span<const policy::JobInfo>,
                                       std::span<const policy::GpuState>,
                                       policy::Instant) override {
    return std::exchange(placements_, {});
  }

 private:
  std::vector<policy::Placement> placements_;
};

policy::PolicySpec told(std::vector<policy::Placement> placements) {
  policy::PolicySpec spec = **registry().find("mps");
  spec.make = [](const policy::ParameterSet&) {
    const policy::PolicySpec& mps = **registry().find("mps");
    return mps.make(policy::defaults(mps));
  };
  spec.name = "told";
  spec.make_placer = [placements](const policy::ParameterSet&) {
    return std::make_unique<Told>(placements);
  };
  return spec;
}

// Two workers have ids 0 and 1: the jobs begin at 2. Both go to GPU 1, one after the other.
TEST(Placement, JobsOnOneGpuRunOneAfterAnother) {
  const policy::PolicySpec spec = told({{2, GpuId{1}}, {3, GpuId{1}}});
  const auto jobs = *run_all(small_run({queue("jobs", {{5}, {5}})}), &spec).fillers.front().jobs;
  EXPECT_EQ(jobs.list[1].placed, Duration{});
  EXPECT_EQ(*jobs.list[1].started, *jobs.list[0].ended);
}

std::string fault_of(const LoadedRun& loaded, const policy::PolicySpec& spec) {
  return error_of(Simulation(loaded, all_of(loaded, &spec)).run()).text();
}

std::string fault_of(const std::vector<policy::Placement>& placements) {
  return fault_of(small_run({queue("jobs", {{5}, {5}})}), told(placements));
}

TEST(Placement, IsChecked) {
  EXPECT_THAT(fault_of({{7, GpuId{0}}}), AllOf(HasSubstr("policy told"),
                                               HasSubstr("job 7 is placed, which does not wait")));
  EXPECT_THAT(fault_of({{2, GpuId{9}}}), HasSubstr("GPU 9, which is none of those"));
  EXPECT_THAT(fault_of({{2, GpuId{0}}, {2, GpuId{1}}}), HasSubstr("job 2 is placed twice"));
}

// Each fits beside the 10 GB of training, both do not. Workers have ids 0 to 3.
TEST(Placement, MemoryIsChecked) {
  const policy::PolicySpec spec = told({{4, GpuId{1}}, {5, GpuId{1}}});
  LoadedRun loaded = small_run({queue("a", {{5}}), queue("b", {{5}})});
  for (FillerConfig& filler : loaded.config.fillers) filler.memory = gb(4);
  EXPECT_THAT(fault_of(loaded, spec), HasSubstr("illegal placement at 0ns: 18GB on GPU 1, which "
                                                "has 16GB"));
}

// Whether an instance is let in is the policy's own admission.
TEST(Placement, AnInstanceMayBeRefusedWhereItIsPlaced) {
  const policy::PolicySpec spec = told({{0, GpuId{1}}, {1, GpuId{1}}});
  LoadedRun loaded = small_run({offline("filler")});
  loaded.config.fillers.front().instances = 2;
  loaded.config.fillers.front().memory = gb(4);
  const observe::FillerResult filler = run_all(loaded, &spec).fillers.front();
  EXPECT_EQ(filler.instances.size(), 2U);
  EXPECT_EQ(filler.admitted_gpus(), 1U);
}

TEST(Placement, InstancesGoWhereThePlacerSays) {
  const policy::PolicySpec spec = told({{0, GpuId{1}}});
  LoadedRun loaded = small_run({offline("filler")});
  loaded.config.fillers.front().instances = 2;
  const observe::FillerResult filler = run_all(loaded, &spec).fillers.front();
  ASSERT_EQ(filler.instances.size(), 1U);
  EXPECT_EQ(filler.instances.front().gpu, GpuId{1});
  EXPECT_EQ(filler.instances_unplaced, 1U);
}

TEST(Placement, WithoutAPlacerInstancesTakeTheFirstGpus) {
  LoadedRun loaded = small_run({offline("filler")});
  loaded.config.fillers.front().instances = 1;
  const observe::FillerResult filler = run_all(loaded).fillers.front();
  ASSERT_EQ(filler.instances.size(), 1U);
  EXPECT_EQ(filler.instances.front().gpu, GpuId{0});
}

// Of each policy that fills bubbles; the small job's bubbles are collectives, so all of them count.
TEST(FillJobs, RunUnderPoliciesWithAPlacer) {
  for (const std::string name : {"pipefill", "freeride"}) {
    LoadedRun loaded = small_run({queue("jobs", {{2}, {2}, {2}})});
    loaded.config.duration = 2s;
    const policy::PolicySpec& spec = **registry().find(name);
    const policy::GivenParameter all{"bubbles", "all"};
    const policy::GivenParameter poll{"manager_poll", "100us"};
    const std::vector<policy::GivenParameter> given =
        name == "pipefill" ? std::vector{all} : std::vector{all, poll};
    loaded.config.policies = {{name, *policy::check_parameters(spec, given, "", "")}};
    const auto report = report_of(loaded);
    const observe::FillJobs& jobs = *report.policies.front().fillers.front().jobs;
    EXPECT_EQ(jobs.submitted, 3U) << name;
    EXPECT_EQ(jobs.finished, 3U) << name;
  }
}

}  // namespace
}  // namespace bubblesim::run
