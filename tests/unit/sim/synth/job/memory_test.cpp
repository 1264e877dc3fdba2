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
  held.before(pipeline::forward(0, 0));
  EXPECT_EQ(held.bytes(), kept.forward);
  held.after(pipeline::input_grad(0, 0));
  EXPECT_EQ(held.bytes(), kept.after_input_grad);
  held.after(pipeline::weight_grad(0, 0));
  EXPECT_EQ(held.bytes(), 0);
}

TEST(Memory, MarksRiseToThePeakAndComeBack) {
  const ParallelPlan plan = pipeline_of("1f1b", 4, 8);
  const SynthesisedJob job = synthesise(plan);
  for (std::uint32_t s = 0; s < 4; ++s) {
    const auto& marks = job.program.ranks[s].memory;
    ASSERT_FALSE(marks.empty());
    std::uint64_t peak = 0;
    for (const program::MemoryMark& mark : marks) peak = std::max(peak, mark.bytes);
    const MemoryNeed& need = job.memory[s];
    EXPECT_NEAR(static_cast<double>(peak), need.fixed.total() + need.activations, 1);
    EXPECT_EQ(marks.front().bytes, marks.back().bytes);
    EXPECT_TRUE(std::is_sorted(marks.begin(), marks.end(),
                               [](const auto& a, const auto& b) { return a.op < b.op; }));
  }
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
