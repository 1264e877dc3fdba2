// Rollouts before training steps: lengths, times by sums of their steps, and who waits for whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/synth/plan_file.hpp"
#include "sim/synth/rank_memory.hpp"
#include "sim/synth/rollout.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

/// A Llama-like model of 2 blocks, trained by `data` replicas of one GPU on 4 samples each.
JobRequest rollout_job(std::uint32_t data, double spare = 1) {
  JobRequest request = tiny_job();
  model::TransformerSpec spec = llama_like(2, 1024);
  spec.max_sequence = 8192;
  request.model = {"small decoder", spec};
  request.plan.attention = model::AttentionKernels::kFlash;
  request.plan.sequence = 256;
  request.plan.micro_batch = 4;
  request.plan.data = data;
  request.plan.folding = Folding::kNothing;
  request.plan.rollout = RolloutPlan{.prompt_tokens = 100, .mean_tokens = 300, .cv = 1,
                                     .most_tokens = 1000, .spare = spare};
  set_micro_batches(request, 1);
  return request;
}

TEST(Rollout, LengthsAreThoseOfTheirDistribution) {
  const RolloutPlan plan{.prompt_tokens = 1, .mean_tokens = 1000, .cv = 0.5, .most_tokens = 100000};
  const std::vector<std::uint32_t> lengths = response_lengths(plan, 20000, 0, 0);
  double sum = 0;
  for (const std::uint32_t length : lengths) sum += length;
  EXPECT_NEAR(sum / 20000, 1000, 15);  // three standard errors of 500 / sqrt(20,000) are 11
  EXPECT_TRUE(std::is_sorted(lengths.begin(), lengths.end()));
  EXPECT_EQ(response_lengths(plan, 20000, 0, 0), lengths);
  EXPECT_NE(response_lengths(plan, 20000, 1, 0), lengths);
  EXPECT_NE(response_lengths(plan, 20000, 0, 1), lengths);
}

TEST(Rollout, SpareResponsesAreTheLongest) {
  RolloutPlan plan{.prompt_tokens = 1, .mean_tokens = 1000, .cv = 1, .most_tokens = 100000};
  std::vector<std::uint32_t> all = response_lengths(plan, 15, 0, 0);
  plan.spare = 1.5;
  all.resize(10);
  EXPECT_EQ(response_lengths(plan, 10, 0, 0), all);
  plan.most_tokens = 700;
  EXPECT_LE(response_lengths(plan, 10, 0, 0).back(), 700U);
}

/// Prompts, then each step with those that have not ended: the second road to a replica's time.
double replica_seconds(const JobRequest& request, std::uint32_t replica) {
  const RolloutPlan& plan = *request.plan.rollout;
  const auto drawn = static_cast<std::uint32_t>(4 * plan.spare);
  const std::vector<std::uint32_t> lengths = response_lengths(plan, 4, replica, 0);
  double sum =
      drawn * to_seconds(generation_step(request, 1, plan.prompt_tokens, 0)->duration);
  for (std::uint32_t token = 1; token < lengths.back(); ++token) {
    const auto ended = std::count_if(lengths.begin(), lengths.end(),
                                     [&](std::uint32_t length) { return length <= token; });
    const auto running = drawn - static_cast<std::uint32_t>(ended);
    sum += to_seconds(
        generation_step(request, running, 1, counted_context(plan.prompt_tokens + token))
            ->duration);
  }
  return sum;
}

// All replicas train when the slowest has its responses.
TEST(Rollout, TakesWhatItsSlowestReplicaTakes) {
  for (const double spare : {1.0, 1.5}) {
    JobRequest request = rollout_job(4, spare);
    double slowest = 0;
    for (std::uint32_t r = 0; r < 4; ++r) {
      slowest = std::max(slowest, replica_seconds(request, r));
    }
    JobRequest plain = request;
    plain.plan.rollout.reset();
    const double training = seconds(plain);
    EXPECT_NEAR(seconds(request), slowest + training, 2e-3 * (slowest + training)) << spare;
  }
}

TEST(Rollout, RoundsHaveLengthsOfTheirOwn) {
  JobRequest request = rollout_job(2);
  request.plan.rollout->rounds = 3;
  const SynthesisedJob job = synthesise(plan_of(request));
  EXPECT_EQ(job.program.ranks[0].iterations, 3U);
  std::size_t steps = 0;
  for (const program::Op& op : job.program.ranks[1].ops) {
    if (job.program.ranks[1].names[op.name] == "rollout decode step") ++steps;
  }
  std::size_t expected = 0;
  for (std::uint32_t round = 0; round < 3; ++round) {
    expected += response_lengths(*request.plan.rollout, 4, 1, round).back() - 1;
  }
  EXPECT_EQ(steps, expected);
}

// 4 responses of up to 1,100 tokens: keys and values of 2 layers and 1,024 columns in 2 bytes.
TEST(Rollout, MemoryHasRoomForEveryResponse) {
  EXPECT_EQ(*rollout_cache_bytes(rollout_job(1)), 4.0 * 1100 * 2 * 2 * 1024 * 2);
  JobRequest large = rollout_job(1);
  large.plan.rollout->most_tokens = 7000;
  EXPECT_GE(memory_need(plan_of(large), 0).activations, *rollout_cache_bytes(large));
}

std::string rollout_fault(JobRequest request) {
  const auto plan = plan_job(std::move(request));
  return plan ? "none" : plan.error().front().text();
}

TEST(Rollout, WhatMakesNoSenseIsRefused) {
  JobRequest folded = rollout_job(2);
  folded.plan.folding = Folding::kAll;
  EXPECT_THAT(rollout_fault(folded), HasSubstr("/folding: replicas end their rollouts apart"));
  JobRequest sharded = rollout_job(2);
  sharded.plan.sharding = Sharding::kParameters;
  EXPECT_THAT(rollout_fault(sharded), HasSubstr("/rollout: expected replicas of one GPU"));
  JobRequest linear = tiny_job();
  linear.plan.rollout = RolloutPlan{};
  EXPECT_THAT(rollout_fault(linear), HasSubstr("/rollout: "));
}

TEST(Rollout, KeysAreReadAndMayBeLeftOut) {
  const auto with = parse_plan(R"({"global_batch": 1, "rollout": {"prompt_tokens": 512,
      "mean_tokens": 2000, "cv": 1, "most_tokens": 16000, "spare": 1.25, "rounds": 4,
      "seed": 7}})", "p");
  ASSERT_TRUE(with.has_value() && with->rollout.has_value());
  EXPECT_EQ(with->rollout->prompt_tokens, 512U);
  EXPECT_EQ(with->rollout->spare, 1.25);
  EXPECT_EQ(with->rollout->rounds, 4U);
  EXPECT_FALSE(parse_plan(R"({"global_batch": 1})", "p")->rollout.has_value());
}

}  // namespace
}  // namespace bubblesim::synth
