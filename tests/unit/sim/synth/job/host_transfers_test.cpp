// Transfers between GPU and host in an iteration: stalls and overlap by closed forms, and memory.
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "sim/synth/inference_program.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/rank_memory.hpp"
#include "sim/synth/transfers.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

JobRequest host_job(const HostPlan& host) {
  JobRequest request = tiny_job();
  request.plan.host = host;
  return request;
}

double copy_seconds(double bytes, double rate) { return to_seconds(kCopyLatency) + bytes / rate; }

double items_seconds(const std::vector<TimedItem>& items, const TimedModel& model) {
  double sum = 0;
  for (const TimedItem& item : items) {
    sum += to_seconds(model.kernels[std::get<std::uint32_t>(item)].duration);
  }
  return sum;
}

/// Forward and backward passes of all layers.
double pass_seconds(const ParallelPlan& plan) {
  double sum = 0;
  for (const std::uint32_t kind : plan.model.work.layers) {
    const TimedLayer& layer = plan.model.layers[kind];
    sum += to_seconds(layer.forward_time + layer.backward_time);
  }
  return sum;
}

std::size_t copies(const SynthesisedJob& job) {
  return static_cast<std::size_t>(std::count_if(
      job.program.ranks[0].ops.begin(), job.program.ranks[0].ops.end(),
      [](const program::Op& op) { return op.kind == program::WorkKind::kCopy; }));
}

// A piece is copied with each of the 10 layers' two passes, from the beginning on: of 12 bytes a
// parameter what the passes do not hide is what the optimiser waits. 100 GB/s hide all of it.
TEST(HostTransfers, ACheckpointStallsByWhatThePassesDoNotHide) {
  for (const double rate : {1e9, 1e10, 1e13}) {
    const ParallelPlan plan =
        plan_of(host_job({.bandwidth = BytesPerSecond{rate}, .checkpoint_every = 1}));
    const SynthesisedJob job = synthesise(plan);
    ASSERT_EQ(checkpoint_bytes(plan, 0), 12 * kElements);
    ASSERT_EQ(copies(job), 20U);
    const double copied = 20 * copy_seconds(12 * kElements / 20, rate);
    const double passes = pass_seconds(plan);
    EXPECT_NEAR(seconds(plan, job),
                std::max(passes, copied) + optimizer_seconds(job.program.ranks[0]),
                2e-3 * passes + to_seconds(kCopyLatency))
        << rate;
  }
}

TEST(HostTransfers, ReplicasWriteAPartOfACheckpointEach) {
  JobRequest request = replicated(4);
  request.plan.host = {.bandwidth = BytesPerSecond{1e10}, .checkpoint_every = 1};
  EXPECT_EQ(checkpoint_bytes(plan_of(request), 0), 3 * kElements);
}

TEST(HostTransfers, ACheckpointIsWrittenInOneOfSoManyIterations) {
  const SynthesisedJob job = synthesise(
      plan_of(host_job({.bandwidth = BytesPerSecond{1e10}, .checkpoint_every = 3})));
  EXPECT_EQ(job.program.ranks[0].iterations, 3U);
  EXPECT_EQ(copies(job), 20U);
}

JobRequest checkpointed_pipeline(const std::string& schedule, std::uint32_t every) {
  JobRequest request = pipelined(4, schedule, 8, 16);
  if (schedule == "interleaved") request.plan.chunks = 2;
  request.plan.host = {.bandwidth = BytesPerSecond{2e9}, .checkpoint_every = every};
  return request;
}

// Every pipeline rank receives each micro-batch anew in each iteration of the program. A checkpoint
// that stalls an iteration by s stalls the mean of `every` of them by s / every.
TEST(HostTransfers, APipelineStallsInOneOfSoManyIterations) {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "dualpipev"}) {
    const double plain = seconds(checkpointed_pipeline(schedule, 0));
    const double stall = seconds(checkpointed_pipeline(schedule, 1)) - plain;
    ASSERT_GT(stall, 0.2 * plain) << schedule;
    for (const std::uint32_t every : {2U, 3U}) {
      EXPECT_NEAR(seconds(checkpointed_pipeline(schedule, every)), plain + stall / every,
                  1e-3 * plain)
          << schedule << " " << every;
    }
  }
}

/// A walk over three resources: compute, copies out, copies in. Layers that keep nothing (the join)
/// are not copied.
double walked_passes(const ParallelPlan& plan) {
  const HostPlan& host = plan.plan().host;
  double compute = 0;
  double out = 0;
  double in = 0;
  std::vector<std::uint32_t> layers = plan.model.work.layers;
  const auto kept = [&](std::size_t i) {
    return host.activations * plan.model.work.kinds[layers[i]].activation_bytes;
  };
  const auto copied = [&](std::size_t i) { return copy_seconds(kept(i), host.bandwidth.value); };
  std::vector<double> out_end(layers.size(), 0);
  std::vector<double> under_way;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (kept(i) > 0 && under_way.size() > host.ahead) {
      compute = std::max(compute, under_way[under_way.size() - host.ahead - 1]);
    }
    compute += items_seconds(plan.model.layers[layers[i]].forward, plan.model);
    if (kept(i) == 0) continue;
    out = std::max(out, compute) + copied(i);
    out_end[i] = out;
    under_way.push_back(out);
  }
  std::vector<double> in_end(layers.size(), 0);
  std::size_t fetched = layers.size();  // layers from here on are on their way
  for (std::size_t i = layers.size(); i-- > 0;) {
    while (fetched > 0 && fetched + host.ahead > i) {
      if (kept(--fetched) == 0) continue;
      in = std::max({in, compute, out_end[fetched]}) + copied(fetched);
      in_end[fetched] = in;
    }
    compute = std::max(compute, in_end[i]) +
              items_seconds(plan.model.layers[layers[i]].backward, plan.model);
  }
  return compute;
}

// From a link that hides all to one that is all there is.
TEST(HostTransfers, ActivationsTakeWhatAWalkOverThreeResourcesSays) {
  for (const double rate : {1e9, 3e9, 1e10, 3e10, 1e11, 1e13}) {
    for (const std::uint32_t ahead : {0U, 1U, 3U}) {
      const ParallelPlan plan = plan_of(
          host_job({.bandwidth = BytesPerSecond{rate}, .activations = 1, .ahead = ahead}));
      const SynthesisedJob job = synthesise(plan);
      const double passes = seconds(plan, job) - optimizer_seconds(job.program.ranks[0]);
      EXPECT_NEAR(passes / walked_passes(plan), 1, 5e-3) << rate << ", " << ahead << " ahead";
    }
  }
}

// A checkpoint and activations wait for each other on the way out: a link that both fill takes the
// sum of what they take.
TEST(HostTransfers, WhatGoesOutSharesTheLink) {
  const double rate = 1e9;
  const auto passes = [&](HostPlan host) {
    host.bandwidth = BytesPerSecond{rate};
    const ParallelPlan plan = plan_of(host_job(host));
    const SynthesisedJob job = synthesise(plan);
    return seconds(plan, job) - optimizer_seconds(job.program.ranks[0]);
  };
  const double both = passes({.activations = 1, .checkpoint_every = 1});
  EXPECT_GT(both, passes({.activations = 1}) + 0.4 * 12 * kElements / rate);
  EXPECT_LT(both, passes({.activations = 1}) + 12 * kElements / rate + 20 * 1.5e-6);
}

// Gradients out, the update, parameters in: 2 bytes a parameter each way, a billion a second.
TEST(HostTransfers, AnOptimiserOnTheHostTakesBothTransfersAndItsUpdate) {
  const ParallelPlan plan =
      plan_of(host_job({.bandwidth = BytesPerSecond{1e10}, .optimizer_per_s = 1e9}));
  const SynthesisedJob job = synthesise(plan);
  EXPECT_EQ(optimizer_seconds(job.program.ranks[0]), 0);
  EXPECT_NEAR(seconds(plan, job),
              pass_seconds(plan) + 2 * copy_seconds(2 * kElements, 1e10) + kElements / 1e9,
              2e-3 * seconds(plan, job));
  EXPECT_EQ(static_memory(plan, 0).optimizer, 0);
}

// 1F1B on 4 ranks: the first holds 4 micro-batches. With three quarters of them on the host a
// quarter stays, and twice two layers' three quarters are on their way.
TEST(HostTransfers, MemoryHasWhatStaysAndWhatIsUnderWay) {
  JobRequest request = pipelined(4, "1f1b", 8, 16);
  const MemoryNeed all = memory_need(plan_of(request), 0);
  request.plan.host = {.bandwidth = BytesPerSecond{1e10}, .activations = 0.75};
  const ParallelPlan plan = plan_of(request);
  const MemoryNeed kept = memory_need(plan, 0);
  double largest = 0;
  for_each_layer(plan, 0, [&](std::uint32_t layer) {
    largest = std::max(largest, plan.model.work.kinds[plan.kind_of(layer)].activation_bytes);
  });
  EXPECT_DOUBLE_EQ(kept.activations, 0.25 * all.activations);
  EXPECT_DOUBLE_EQ(kept.working - all.working, 2 * 2 * 0.75 * largest);
  EXPECT_LT(kept.total(), all.total());
}

TEST(HostTransfers, WhatMakesNoSenseIsRefused) {
  EXPECT_THAT(fault_of(host_job({.activations = 1})),
              HasSubstr("/host: plain does not say its host's bandwidth"));
  EXPECT_THAT(fault_of(host_job({.bandwidth = BytesPerSecond{1e9}, .optimizer_per_s = 1e9,
                                   .checkpoint_every = 1})),
              HasSubstr("/host/checkpoint_every: the host has"));
  const HostPlan far{.bandwidth = BytesPerSecond{1e9}, .activations = 0.5, .ahead = 11};
  EXPECT_THAT(fault_of(host_job(far)),
              HasSubstr("/host/ahead: found 11; expected at most 10, the layers of the longest"));
}

// At 100,000 a second the update of 7e9 parameters is a pause of 70,000 s, in 16,300 steps of at
// most 4.29 s; at 1 a second it had 1.6e9 steps.
TEST(HostTransfers, AnUpdateThatNeverEndsIsRefused) {
  const auto with_rate = [](const std::string& rate) {
    return parse_plan(R"({"global_batch": 1, "host": {"optimizer_per_s": )" + rate + "}}", "p");
  };
  EXPECT_TRUE(with_rate("100000").has_value());
  const auto slow = error_of(with_rate("99999"));
  EXPECT_THAT(slow.front().text(),
              HasSubstr("/host/optimizer_per_s: found the number 99999; expected"));
}

TEST(HostTransfers, KeysAreReadAndMayBeLeftOut) {
  const auto with = must(parse_plan(R"({"global_batch": 1, "host": {"bandwidth_gb_per_s": 12.5,
      "activations": 0.5, "ahead": 2, "optimizer_per_s": 1e9, "checkpoint_every": 4}})", "p"));
  EXPECT_EQ(with.host.bandwidth.value, 12.5e9);
  EXPECT_EQ(with.host.activations, 0.5);
  EXPECT_EQ(with.host.ahead, 2U);
  EXPECT_EQ(with.host.optimizer_per_s, 1e9);
  EXPECT_EQ(with.host.checkpoint_every, 4U);
  const auto without = must(parse_plan(R"({"global_batch": 1})", "p"));
  EXPECT_FALSE(without.host.moves());
}

}  // namespace
}  // namespace bubblesim::synth
