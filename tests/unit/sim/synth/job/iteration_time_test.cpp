// How long synthesised iterations take, against sums by hand and against schedule tables.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/pipeline/registry.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

TEST(IterationTime, OneGpuTakesTheSumOfItsKernels) {
  const ParallelPlan plan = plan_of(tiny_job());
  const SynthesisedJob job = synthesise(plan);
  Duration sum{};
  for (const program::Op& op : job.program.ranks[0].ops) sum += op.duration;
  EXPECT_NEAR(seconds(plan, job), to_seconds(sum), 1e-6);
}

TEST(IterationTime, APauseLongerThanAStepHoldsIsTakenInFull) {
  JobRequest request = tiny_job(2);
  const double without = seconds(request);
  request.software.iteration = std::chrono::seconds(10);
  EXPECT_NEAR(seconds(request) - without, 10, 0.001);
  request.software.iteration = {};
  request.software.forward_gap = std::chrono::seconds(6);  // seven kernels
  EXPECT_NEAR(seconds(request) - without, 7 * 6, 0.01);
}

TEST(IterationTime, NaiveModelParallelTakesTheSumOfAllStages) {
  JobRequest request = tiny_job();
  request.plan.pipeline = 4;
  request.plan.schedule = "sequential";
  set_micro_batches(request, 2);
  const ParallelPlan plan = plan_of(request);
  const SynthesisedJob job = synthesise(plan);
  Duration layers{};
  for (const std::uint32_t kind : plan.model.work.layers) {
    layers += plan.model.layers[kind].forward_time + plan.model.layers[kind].backward_time;
  }
  const double expected =
      2 * to_seconds(layers) + optimizer_seconds(job.program.ranks[0]);
  EXPECT_NEAR(seconds(plan, job) / expected, 1, 0.01);
}

TEST(IterationTime, ATransferAddsItsBytesOverTheLinksRate) {
  JobRequest request = tiny_job();
  request.plan.pipeline = 2;
  request.plan.schedule = "sequential";
  const double free = seconds(request);
  request.cluster = plain_cluster(1e10);
  // 1024 samples x 4096 x 2 bytes at 10 GB/s: 839 us, there and back.
  EXPECT_NEAR(seconds(request) - free, 2 * 1024 * 4096 * 2 / 1e10, 2e-5);
}

TEST(IterationTime, EverySchedulesTableIsWhatItsJobTakes) {
  for (const pipeline::ScheduleSpec& spec : pipeline::schedule_specs()) {
    for (const std::uint32_t p : {2U, 4U}) {
      for (const std::uint32_t m : {2 * p, 3 * p}) {
        JobRequest request = tiny_job(16);
        request.plan.pipeline = p;
        request.plan.schedule = spec.name;
        set_micro_batches(request, m);
        // Without it ranks run ahead into the next iteration, which ZB-H2 is made for.
        request.software.gradient_norm = GradientNorm::kGlobal;
        const ParallelPlan plan = plan_of(request);
        const SynthesisedJob job = synthesise(plan);
        double optimizer = 0;  // all start it together
        for (const program::Program& rank : job.program.ranks) {
          optimizer = std::max(optimizer, optimizer_seconds(rank));
        }
        const double took = seconds(plan, job) - optimizer;
        // Gradients of the two copies cost nothing on these links.
        EXPECT_NEAR(took / table_seconds(plan), 1, 0.002) << spec.name << " " << p << " " << m;
      }
    }
  }
}

TEST(IterationTime, OneForwardOneBackwardHasMPlusPMinusOneSlots) {
  JobRequest request = tiny_job(16);
  request.plan.pipeline = 4;
  set_micro_batches(request, 8);
  const ParallelPlan plan = plan_of(request);
  const SynthesisedJob job = synthesise(plan);
  // Three stages of four layers; the last one has join and output too, and sets the pace.
  const auto slot = [&](std::uint32_t stage) {
    Duration sum{};
    for (std::uint32_t i = plan.stages[stage].layers.first; i < plan.stages[stage].layers.last;
         ++i) {
      const TimedLayer& layer = plan.model.layers[plan.kind_of(i)];
      sum += layer.forward_time + layer.backward_time;
    }
    return to_seconds(sum);
  };
  const double took = seconds(plan, job) - optimizer_seconds(job.program.ranks[0]);
  EXPECT_EQ(plan.stages[0].layers, (StageLayers{0, 4}));
  EXPECT_NEAR(took / (3 * slot(0) + 8 * slot(3)), 1, 0.002);
}

JobRequest ddp(double rate) {
  JobRequest request = tiny_job(4);
  request.plan.data = 4;
  request.cluster = plain_cluster(rate);
  request.plan.gradients.first_bucket = Bytes{1};
  request.plan.gradients.bucket = Bytes{1};
  set_micro_batches(request, 1);
  return request;
}

TEST(IterationTime, OverlappedBucketsLeaveTheLastOneExposed) {
  const double free = seconds(ddp(1e16));
  // A layer's gradients take 2 (4096^2 + 4096) bytes x 1.5 / 500 GB/s = 101 us, less than its
  // backward pass; only the first layer's, which come last, are waited for.
  const double exposed = 2.0 * (4096.0 * 4096 + 4096) * 1.5 / 5e11;
  EXPECT_NEAR(seconds(ddp(5e11)) - free, exposed, 0.05 * exposed);
}

TEST(IterationTime, GradientsAfterTheBackwardPassAreAllExposed) {
  JobRequest request = ddp(5e11);
  request.plan.gradients.sync = GradientSync::kAfterBackward;
  const double layers = 4 * (4096.0 * 4096 + 4096) + 4096 + 1;
  EXPECT_NEAR(seconds(request) - seconds(ddp(1e16)), 2 * layers * 1.5 / 5e11, 1e-5);
}

TEST(IterationTime, MoreThan255BucketsAreAllWaitedFor) {
  JobRequest request = ddp(1e9);
  request.model = linear_layers(150);  // 302 buckets
  const double bytes = 2 * (150 * (4096.0 * 4096 + 4096) + 4096 + 1);
  EXPECT_GT(seconds(request), bytes * 1.5 / 1e9);
}

TEST(WideArea, AsynchronousTakesLocalWorkAndAveragingWaits) {
  JobRequest request = tiny_job(4);
  request.plan.data = 8;
  request.cluster.regions = hardware::RegionSpec{2, BytesPerSecond{1e9}, {}};
  request.cluster.nodes = 4;
  request.cluster.gpus_per_node = 2;
  request.cluster.nics.count = 2;
  set_micro_batches(request, 1);
  JobRequest local = request;
  local.plan.data = 4;
  set_micro_batches(local, 1);
  const double alone = seconds(local);
  request.plan.wide_area = {WideAreaMode::kAsynchronous, 4};
  EXPECT_NEAR(seconds(request) / alone, 1, 0.02);
  request.plan.wide_area = {WideAreaMode::kAveraging, 4};
  // Two regions exchange all parameters once over 1 GB/s in four iterations.
  const double bytes = 2 * (4 * (4096.0 * 4096 + 4096) + 4096 + 1);
  EXPECT_NEAR(seconds(request) - alone, bytes / 1e9 / 4, 0.1 * bytes / 1e9 / 4);
}

// 134 MB between two regions take 134 ms at 1 GB/s and 13 ms at 10 GB/s; four iterations of some 5
// ms are 20 ms.
TEST(WideArea, ExchangesThatFallBehindAreCounted) {
  const auto late = [](double rate) {
    JobRequest request = tiny_job(4);
    request.plan.data = 8;
    request.cluster.regions = hardware::RegionSpec{2, BytesPerSecond{rate}, {}};
    request.cluster.gpus_per_node = 2;
    request.cluster.nics.count = 2;
    set_micro_batches(request, 1);
    request.plan.wide_area = {WideAreaMode::kAsynchronous, 4};
    const SynthesisedJob job = synthesise(plan_of(request));
    EXPECT_FALSE(job.program.ranks.empty());
    return job.program.counters.count(kLateExchanges.name) / job.program.ranks.size();
  };
  EXPECT_EQ(late(1e9), 1U);
  EXPECT_EQ(late(1e10), 0U);
}

}  // namespace
}  // namespace bubblesim::synth
