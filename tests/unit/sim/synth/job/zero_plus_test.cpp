// ZeRO++ (arXiv 2306.10209): second copies inside nodes and fewer bytes on the wire; traffic by
// closed forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/network/topology.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/rank_memory.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

constexpr double kLinearElements = 8 * (4096.0 * 4096 + 4096) + 4096 + 1;

/// ZeRO-3 on 16 GPUs: 4 nodes of 4.
JobRequest sharded_job() {
  JobRequest request = tiny_job();
  request.plan.data = 16;
  request.plan.sharding = Sharding::kParameters;
  set_micro_batches(request, 1);
  return request;
}

JobRequest zero_plus_job() {
  JobRequest request = sharded_job();
  request.plan.parameters = {.secondary = 4, .element_bytes = 1};
  request.plan.gradients.element_bytes = 0.5;
  return request;
}

/// Bytes that leave the first node in an iteration.
double bytes_between_nodes(const JobRequest& request) {
  const SynthesisedJob job = synthesise(plan_of(request));
  const network::Topology topology(request.cluster);
  double bytes = 0;
  for (const workload::JoinedCollective& collective : job.program.collectives) {
    for (const network::LinkLoad& load : job.program.transfers[collective.transfer].loads) {
      for (std::uint32_t gpu = 0; gpu < 4; ++gpu) {
        if (load.link == topology.nic(gpu, network::Direction::kOut)) bytes += load.bytes;
      }
    }
  }
  return bytes;
}

// A ring of R ranks carries (R - 1) / R of an array out of each node. ZeRO-3: parameters twice and
// gradients once, 2 bytes each. Arrays are rounded to whole bytes, one a layer.
TEST(ZeroPlus, TrafficBetweenNodesIsThatOfThePaper) {
  const double ring = 15.0 / 16;
  EXPECT_NEAR(bytes_between_nodes(sharded_job()), 6 * kLinearElements * ring, 30);
  EXPECT_NEAR(bytes_between_nodes(zero_plus_job()), 1.5 * kLinearElements * ring, 30);  // a quarter

  JobRequest second_copy = sharded_job();
  second_copy.plan.parameters.secondary = 4;
  EXPECT_NEAR(bytes_between_nodes(second_copy), 4 * kLinearElements * ring, 30);

  JobRequest quantised = sharded_job();
  quantised.plan.parameters.element_bytes = 1;  // both gathers: there is no second copy
  EXPECT_NEAR(bytes_between_nodes(quantised), 4 * kLinearElements * ring, 30);
}

TEST(ZeroPlus, ASecondCopyTakesItsPartOfTheParameters) {
  const double more = static_memory(plan_of(zero_plus_job()), 0).total() -
                      static_memory(plan_of(sharded_job()), 0).total();
  EXPECT_NEAR(more, 2 * kLinearElements / 4, 1);
}

// Links of 1 GB/s: an iteration is its exchanges, so that the gain is that of the bytes; in a node
// with ports a thousand times as fast the second copy's gathers cost nothing.
TEST(ZeroPlus, WhereExchangesAreAllItIsUpToFourTimesAsFast) {
  const auto slow = [](JobRequest request) {
    request.cluster.nics.bandwidth = BytesPerSecond{1e9};
    request.cluster.node.bandwidth = BytesPerSecond{1e12};
    return seconds(std::move(request));
  };
  const double gain = slow(sharded_job()) / slow(zero_plus_job());
  EXPECT_GT(gain, 3.5);
  EXPECT_LE(gain, 4.001);
}

TEST(ZeroPlus, FoldedOrNotTheTimeIsTheSame) {
  JobRequest folded = zero_plus_job();
  JobRequest whole = zero_plus_job();
  whole.plan.folding = Folding::kNothing;
  EXPECT_NEAR(seconds(std::move(folded)) / seconds(std::move(whole)), 1, 1e-3);
}

std::string first_fault(JobRequest request) {
  const auto plan = plan_job(std::move(request));
  return plan ? "none" : plan.error().front().text();
}

TEST(ZeroPlus, WhatMakesNoSenseIsRefused) {
  JobRequest unsharded = zero_plus_job();
  unsharded.plan.sharding = Sharding::kGradients;
  EXPECT_THAT(first_fault(unsharded), HasSubstr("/parameters: says how sharded parameters"));
  JobRequest uneven = zero_plus_job();
  uneven.plan.parameters.secondary = 5;
  EXPECT_THAT(first_fault(uneven),
              HasSubstr("/parameters/secondary: found 5; expected a divisor of data x context"));
}

// 12 replicas on nodes of 4: runs of 3 and 6 lie on parts of two nodes.
TEST(ZeroPlus, ASecondCopyLiesInsideANodeOrOnWholeNodes) {
  JobRequest request = zero_plus_job();
  request.plan.data = 12;
  set_micro_batches(request, 1);
  for (const std::uint32_t ranks : {3U, 6U}) {
    request.plan.parameters.secondary = ranks;
    EXPECT_THAT(first_fault(request), HasSubstr("neighbours that lie inside a node")) << ranks;
  }
  for (const std::uint32_t ranks : {1U, 2U, 4U, 12U}) {
    request.plan.parameters.secondary = ranks;
    EXPECT_EQ(first_fault(request), "none") << ranks;
  }
}

TEST(ZeroPlus, KeysAreReadAndMayBeLeftOut) {
  const auto with = parse_plan(R"({"global_batch": 16, "data": 16, "sharding": "parameters",
      "parameters": {"secondary": 8}, "gradients": {"element_bytes": 0.5}})", "p");
  ASSERT_TRUE(with.has_value());
  EXPECT_EQ(with->parameters.secondary, 8U);
  EXPECT_EQ(with->parameters.element_bytes, 2);
  EXPECT_EQ(with->gradients.element_bytes, 0.5);
  const auto without = parse_plan(R"({"global_batch": 1})", "p");
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(without->parameters.secondary, 0U);
  EXPECT_EQ(without->parameters.element_bytes, 0);
}

}  // namespace
}  // namespace bubblesim::synth
