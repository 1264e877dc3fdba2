// Device memory of ranks.
#include "sim/synth/rank_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

ParallelPlan pipeline_of(const char* schedule, std::uint32_t p, std::uint32_t m) {
  JobRequest request = tiny_job(16);
  request.plan.pipeline = p;
  request.plan.schedule = schedule;
  set_micro_batches(request, m);
  return plan_of(request);
}

TEST(Memory, IsSixteenBytesAParameterWithAdam) {
  const ParallelPlan plan = plan_of(tiny_job());
  const double elements = 8 * (4096.0 * 4096 + 4096) + 4096 + 1;
  const StaticMemory memory = static_memory(plan, 0);
  EXPECT_EQ(memory.parameters, 2 * elements);
  EXPECT_EQ(memory.gradients, 2 * elements);
  EXPECT_EQ(memory.optimizer, 12 * elements);
}

// Rajbhandari et al. 2020: 4 + 12/n, 2 + 14/n, 16/n bytes a parameter.
TEST(Memory, ShardsAreDividedByTheReplicas) {
  JobRequest request = tiny_job();
  request.plan.data = 8;
  set_micro_batches(request, 1);
  const double elements = 8 * (4096.0 * 4096 + 4096) + 4096 + 1;
  const auto bytes = [&](Sharding sharding) {
    request.plan.sharding = sharding;
    return static_memory(plan_of(request), 0).total() / elements;
  };
  EXPECT_NEAR(bytes(Sharding::kNone), 16, 1e-9);
  EXPECT_NEAR(bytes(Sharding::kOptimizer), 4 + 12.0 / 8, 1e-9);
  EXPECT_NEAR(bytes(Sharding::kGradients), 2 + 14.0 / 8, 1e-9);
  EXPECT_NEAR(bytes(Sharding::kParameters), 16.0 / 8, 1e-9);
}

// The gradients of the stage whose run is under way are whole.
TEST(Memory, GradientShardsOfAPipelineHoldAStageWhole) {
  JobRequest request = tiny_job();
  request.plan.pipeline = 2;
  request.plan.data = 8;
  request.plan.sharding = Sharding::kGradients;
  set_micro_batches(request, 4);
  const double half = 4 * (4096.0 * 4096 + 4096);
  EXPECT_NEAR(static_memory(plan_of(request), 0).gradients, 2 * half, 1e-9);
  request.plan.schedule = "interleaved";
  request.plan.chunks = 2;
  EXPECT_NEAR(static_memory(plan_of(request), 0).gradients, 2 * (half / 2 + half / 8), 1e-9);
}

TEST(Memory, OneForwardOneBackwardHoldsPMinusSMicroBatches) {
  const ParallelPlan plan = pipeline_of("1f1b", 4, 8);
  for (std::uint32_t s = 0; s < 4; ++s) {
    EXPECT_EQ(memory_need(plan, s).activations, (4 - s) * activation_bytes(plan, s).forward);
  }
}

TEST(Memory, GpipeHoldsAllMicroBatches) {
  const ParallelPlan plan = pipeline_of("gpipe", 4, 8);
  for (std::uint32_t s = 0; s < 4; ++s) {
    EXPECT_EQ(memory_need(plan, s).activations, 8 * activation_bytes(plan, s).forward);
  }
}

TEST(Memory, ASplitBackwardPassKeepsWhatItsSecondHalfNeeds) {
  const ParallelPlan plan = pipeline_of("zb-h1", 4, 8);
  HeldActivations held(plan);
  const KeptBytes kept = activation_bytes(plan, 0);
  held.begin_action(pipeline::forward(0, 0));
  EXPECT_EQ(held.bytes(), kept.forward);
  held.end_action(pipeline::input_grad(0, 0));
  EXPECT_EQ(held.bytes(), kept.after_input_grad);
  held.end_action(pipeline::weight_grad(0, 0));
  EXPECT_EQ(held.bytes(), 0);
}

double greatest_mark(const program::Program& rank) {
  std::uint64_t most = 0;
  for (const program::MemoryMark& mark : rank.memory) most = std::max(most, mark.bytes);
  return static_cast<double>(most);
}

TEST(Memory, MarksRiseToThePeakAndComeBack) {
  const ParallelPlan plan = pipeline_of("1f1b", 4, 8);
  const SynthesisedJob job = synthesise(plan);
  for (std::uint32_t s = 0; s < 4; ++s) {
    const auto& marks = job.program.ranks[s].memory;
    ASSERT_FALSE(marks.empty());
    const MemoryNeed& need = job.memory[s];
    EXPECT_GT(need.working, 0);
    EXPECT_NEAR(greatest_mark(job.program.ranks[s]), need.total(), 1);
    EXPECT_EQ(marks.front().bytes, marks.back().bytes);
    EXPECT_TRUE(std::is_sorted(marks.begin(), marks.end(),
                               [](const auto& a, const auto& b) { return a.op < b.op; }));
  }
}

// What a trace of the job says is what fillers beside it may not have.
TEST(Memory, TheGreatestMarkIsTheNeedOfEveryPlan) {
  JobRequest sharded = tiny_job();
  sharded.plan.data = 8;
  set_micro_batches(sharded, 2);
  JobRequest replicas = sharded;
  sharded.plan.sharding = Sharding::kParameters;
  JobRequest offloaded = sharded;
  offloaded.plan.host.activations = 0.8;
  offloaded.plan.host.bandwidth = BytesPerSecond{25e9};
  std::vector<ParallelPlan> plans;
  for (const JobRequest& request : {replicas, sharded, offloaded}) {
    plans.push_back(plan_of(request));
  }
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "dualpipev", "chimera"}) {
    plans.push_back(pipeline_of(schedule, 4, 8));
  }
  for (const ParallelPlan& plan : plans) {
    const SynthesisedJob job = synthesise(plan);
    for (std::size_t i = 0; i < job.program.ranks.size(); ++i) {
      EXPECT_GT(job.memory[i].working, 0) << plan.schedule.name;
      EXPECT_NEAR(greatest_mark(job.program.ranks[i]), job.memory[i].total(), 1)
          << plan.schedule.name << " rank " << i;
    }
  }
}

// Gradients of a layer's inputs and outputs, of 1024 x 4096 numbers of 2 bytes each, are needed
// while the backward pass of the only micro-batch runs, and no longer.
TEST(Memory, WorkingMemoryIsMarkedWhileABackwardPassRuns) {
  const ParallelPlan plan = plan_of(tiny_job());
  const SynthesisedJob job = synthesise(plan);
  const MemoryNeed& need = job.memory[0];
  std::vector<double> marks;
  for (const program::MemoryMark& mark : job.program.ranks[0].memory) {
    marks.push_back(static_cast<double>(mark.bytes));
  }
  const double fixed = need.fixed.total();
  EXPECT_EQ(need.working, 2 * 1024 * 4096 * 2);
  EXPECT_EQ(marks, (std::vector<double>{fixed, fixed + need.activations, need.total(), fixed}));
}

TEST(Memory, BothCopiesOfTheModelAreHeld) {
  const ParallelPlan pipelined = pipeline_of("1f1b", 4, 8);
  const ParallelPlan two = pipeline_of("chimera", 4, 8);
  double single = 0;
  double doubled = 0;
  for (std::uint32_t s = 0; s < 4; ++s) {
    single += static_memory(pipelined, s).total();
    doubled += static_memory(two, s).total();
  }
  EXPECT_EQ(doubled, 2 * single);
}

}  // namespace
}  // namespace bubblesim::synth
