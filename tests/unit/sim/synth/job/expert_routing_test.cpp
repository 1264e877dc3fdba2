// Skewed routing and placed experts: the busiest rank's load by hand, and what a job makes of it.
#include "sim/synth/expert_routing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/synth/plan_file.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

ExpertRouting zipf(double exponent, ExpertPlacement placement = ExpertPlacement::kContiguous) {
  ExpertRouting routing;
  routing.zipf = exponent;
  routing.placement = placement;
  return routing;
}

ExpertRouting counted(std::vector<double> shares, std::vector<std::uint32_t> ranks = {}) {
  ExpertRouting routing;
  routing.shares = std::move(shares);
  routing.ranks = std::move(ranks);
  return routing;
}

double load(const ExpertRouting& routing, std::uint32_t experts, std::uint32_t ranks) {
  const auto found = busiest_load(routing, experts, ranks);
  EXPECT_TRUE(found) << (found ? "" : found.error().text());
  return found.value_or(0);
}

TEST(ExpertRouting, EvenRoutingIsEvenHoweverExpertsLie) {
  EXPECT_NEAR(load({}, 8, 4), 1, 1e-12);
  EXPECT_NEAR(load(zipf(0, ExpertPlacement::kBalanced), 8, 2), 1, 1e-12);
}

// Shares in proportion to 1, 1/2, ..., 1/8, whose sum is H = 761/280.
TEST(ExpertRouting, ContiguousExpertsPutTheMostWantedTogether) {
  const double h = 761.0 / 280;
  EXPECT_NEAR(load(zipf(1), 8, 4), (1 + 0.5) / h * 4, 1e-12);
  EXPECT_NEAR(load(zipf(1), 8, 8), 1 / h * 8, 1e-12);
  EXPECT_NEAR(load(zipf(1), 8, 1), 1, 1e-12);
}

// 1 and 1/8, 1/2 and 1/7, 1/3 and 1/6, 1/4 and 1/5.
TEST(ExpertRouting, BalancingPairsTheMostWantedWithTheLeast) {
  const double h = 761.0 / 280;
  EXPECT_NEAR(load(zipf(1, ExpertPlacement::kBalanced), 8, 4),
              (1 + 1.0 / 8) / h * 4, 1e-12);
}

TEST(ExpertRouting, CountsAndRanksMayBeGiven) {
  // Rank 0: 9 + 1, rank 1: 4 + 2, of 16; the mean is 8.
  EXPECT_NEAR(load(counted({9, 4, 2, 1}, {0, 1, 1, 0}), 4, 2), 10.0 / 8, 1e-12);
  EXPECT_NEAR(load(counted({9, 4, 2, 1}), 4, 2), 13.0 / 8, 1e-12);
}

// No placement can take less than the most wanted expert alone, or more than all at once.
TEST(ExpertRouting, BalancingIsNeverWorseAndNeverBelowTheBound) {
  for (double skew = 0; skew <= 3; skew += 0.25) {
    for (const std::uint32_t ranks : {2U, 4U, 8U, 16U}) {
      const double even = load(zipf(skew, ExpertPlacement::kBalanced), 16, ranks);
      EXPECT_LE(even, load(zipf(skew), 16, ranks) + 1e-12);
      EXPECT_GE(even + 1e-12, token_shares(zipf(skew), 16).front() * ranks);
      EXPECT_LE(even, ranks);
    }
  }
}

TEST(ExpertRouting, WhatCannotBePlacedIsRefused) {
  EXPECT_THAT(busiest_load(counted({1, 2}), 8, 4).error().text(),
              HasSubstr("/routing/shares: found 2 values; expected one for each of the model's 8"));
  EXPECT_THAT(busiest_load(counted({}, {0, 0, 0, 1}), 4, 2).error().text(),
              HasSubstr("rank 0 has more than 2 of the 4 experts"));
  EXPECT_THAT(busiest_load(counted({}, {0, 1, 2, 1}), 4, 2).error().text(),
              HasSubstr("found rank 2; expected 0 to 1"));
}

TEST(ExpertRouting, APlanTakesItsLoadFromIt) {
  const auto plan = parse_plan(
      R"({"global_batch": 4, "data": 4, "expert": 4, "routing": {"zipf": 1}})", "p");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->routing.value().zipf, 1);
  const auto both = parse_plan(
      R"({"global_batch": 4, "expert_load": 2, "routing": {"shares": [1]}})", "p");
  ASSERT_FALSE(both.has_value());
  EXPECT_THAT(both.error().front().text(), HasSubstr("/expert_load: found beside \"routing\""));
}

TEST(ExpertRouting, AModelWithoutExpertsHasNoneToPlace) {
  JobRequest request = tiny_job();
  request.plan.routing = zipf(1);
  const auto plan = plan_job(request);
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(plan.error().front().text(), HasSubstr("/routing: linear layers has no experts"));
}

model::ModelSpec mixture() {
  model::TransformerSpec spec;
  spec.layers = 2;
  spec.hidden = 1024;
  spec.heads = 8;
  spec.kv_heads = 8;
  spec.head_size = 128;
  spec.vocabulary = 1024;
  spec.max_sequence = 1024;
  spec.ffn = 4096;
  model::MixtureSpec experts;
  experts.experts = 8;
  experts.top_k = 2;
  experts.expert_ffn = 4096;
  spec.mixture = experts;
  return {"mixture", spec};
}

/// Bytes of an iteration's all-to-alls.
double exchanged(std::optional<ExpertRouting> routing) {
  JobRequest request = tiny_job();
  request.model = mixture();
  request.plan.data = request.plan.expert = 4;
  request.plan.micro_batch = 1;
  set_micro_batches(request, 1);
  request.plan.routing = std::move(routing);
  return bytes_of_kind(synthesise(plan_of(request)), traces::CollectiveKind::kAllToAll);
}

TEST(ExpertRouting, TheTailOfTheAllToAllIsTheBusiestRanks) {
  const double even = exchanged(std::nullopt);
  ASSERT_GT(even, 0);
  const double h = 761.0 / 280;
  EXPECT_NEAR(exchanged(zipf(1)) / even, 1.5 / h * 4, 1e-6);
  EXPECT_NEAR(exchanged(zipf(1, ExpertPlacement::kBalanced)) / even,
              1.125 / h * 4, 1e-6);
}

}  // namespace
}  // namespace bubblesim::synth
