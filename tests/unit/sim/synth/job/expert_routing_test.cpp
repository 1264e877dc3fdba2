// Skewed routing and placed experts: the busiest rank's load by hand, and what a job makes of it.
#include "sim/synth/expert_routing.hpp"

#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <string>

#include "sim/synth/plan_file.hpp"
#include "tests/fault.hpp"
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
  const auto found = rank_loads(routing, experts, ranks);
  EXPECT_TRUE(found) << (found ? "" : found.error().text());
  return found ? busiest_load(*found) : 0;
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
  EXPECT_NEAR(load(zipf(1, ExpertPlacement::kBalanced), 8, 4), (1 + 1.0 / 8) / h * 4, 1e-12);
}

TEST(ExpertRouting, CountsAndRanksMayBeGiven) {
  // Rank 0: 9 + 1, rank 1: 4 + 2, of 16; the mean is 8.
  EXPECT_NEAR(load(counted({9, 4, 2, 1}, {0, 1, 1, 0}), 4, 2), 10.0 / 8, 1e-12);
  EXPECT_NEAR(load(counted({9, 4, 2, 1}), 4, 2), 13.0 / 8, 1e-12);
}

TEST(ExpertRouting, EachRankHasItsOwnExpertsTokens) {
  using testing::ElementsAre;
  EXPECT_THAT(*rank_loads(counted({9, 4, 2, 1}, {0, 1, 1, 0}), 4, 2), ElementsAre(1.25, 0.75));
  EXPECT_THAT(*rank_loads(counted({9, 4, 2, 1}), 4, 4), ElementsAre(2.25, 1, 0.5, 0.25));
  // Where only the busiest rank's is known, the others share the rest: 4 - 2.5 over 3.
  EXPECT_THAT(loads_beside(2.5, 4), ElementsAre(2.5, 0.5, 0.5, 0.5));
  EXPECT_THAT(loads_beside(1, 1), ElementsAre(1));
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
  EXPECT_THAT(rank_loads(counted({1, 2}), 8, 4).error().text(),
              HasSubstr("/routing/shares: found 2 values; expected one for each of the model's 8"));
  EXPECT_THAT(rank_loads(counted({}, {0, 0, 0, 1}), 4, 2).error().text(),
              HasSubstr("rank 0 has more than 2 of the 4 experts"));
  EXPECT_THAT(rank_loads(counted({}, {0, 1, 2, 1}), 4, 2).error().text(),
              HasSubstr("found rank 2; expected 0 to 1"));
}

TEST(ExpertRouting, APlanTakesItsLoadFromIt) {
  const auto plan = must(parse_plan(
      R"({"global_batch": 4, "data": 4, "expert": 4, "routing": {"zipf": 1}})", "p"));
  EXPECT_EQ(plan.routing.value().zipf, 1);
  const auto both = error_of(parse_plan(
      R"({"global_batch": 4, "expert_load": 2, "routing": {"shares": [1]}})", "p"));
  EXPECT_THAT(both.front().text(), HasSubstr("/expert_load: found beside \"routing\""));
}

std::string write_shares(const std::string& text) {
  const std::string path = testing::TempDir() + "skew.csv";
  std::ofstream(path) << text;
  return path;
}

TEST(ExpertRouting, CountsMayBeZeroButNotAllOfThem) {
  const auto plan = parse_plan(R"({"global_batch": 4, "routing": {"shares": [3, 0, 1]}})", "p");
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(plan->routing->shares, testing::ElementsAre(3, 0, 1));
  EXPECT_NEAR(load(counted({3, 0, 1, 0}), 4, 2), 1.5, 1e-12);
  EXPECT_THAT(rank_loads(counted({0, 0}), 2, 2).error().text(), HasSubstr("found only 0"));
  EXPECT_FALSE(parse_plan(R"({"global_batch": 4, "routing": {"shares": []}})", "p").has_value());
}

TEST(ExpertRouting, CountsMayStandInATableBesideThePlan) {
  const std::string path = write_shares("expert,share\n0,9\n1,4.5\n2,0\n3,1\n");
  EXPECT_THAT(*read_shares(path), testing::ElementsAre(9, 4.5, 0, 1));
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "plan.json")
      << R"({"global_batch": 4, "routing": {"shares": "skew.csv"}})";
  const auto plan = must(read_plan_file(folder + "plan.json"));
  EXPECT_EQ(read_shares(plan.routing->shares_csv.value())->size(), 4U);
}

TEST(ExpertRouting, FaultsOfATableNameFileAndLine) {
  const auto fault = [](const std::string& text) {
    return read_shares(write_shares(text)).error().text();
  };
  EXPECT_THAT(fault("share\n1\n-2\n"), HasSubstr("skew.csv: line 3: share: found \"-2\""));
  EXPECT_THAT(fault("share\n1\nmany\n"), HasSubstr("line 3: share: found \"many\""));
  EXPECT_THAT(fault("count\n1\n"), HasSubstr("line 1: expected a column \"share\""));
  EXPECT_THAT(read_shares("no/skew.csv").error().text(), HasSubstr("no/skew.csv"));
}

TEST(ExpertRouting, AModelWithoutExpertsHasNoneToPlace) {
  JobRequest request = tiny_job();
  request.plan.routing = zipf(1);
  EXPECT_THAT(fault_of(request), HasSubstr("/routing: linear layers has no experts"));
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

/// 8 experts on 4 ranks, of which each sends 2 copies of 1024 tokens.
JobRequest mixture_job(std::optional<ExpertRouting> routing, Folding folding = Folding::kAll) {
  JobRequest request = tiny_job();
  request.model = mixture();
  request.gpu.sm_count = 16;
  request.plan.data = request.plan.expert = 4;
  request.plan.micro_batch = 1;
  request.plan.folding = folding;
  set_micro_batches(request, 1);
  request.plan.routing = std::move(routing);
  return request;
}

/// Bytes of an iteration's all-to-alls.
double exchanged(std::optional<ExpertRouting> routing) {
  return bytes_of_kind(synthesise(plan_of(mixture_job(std::move(routing)))),
                       traces::CollectiveKind::kAllToAll);
}

TEST(ExpertRouting, TheTailOfTheAllToAllIsTheBusiestRanks) {
  const double even = exchanged(std::nullopt);
  ASSERT_GT(even, 0);
  const double h = 761.0 / 280;
  EXPECT_NEAR(exchanged(zipf(1)) / even, 1.5 / h * 4, 1e-6);
  EXPECT_NEAR(exchanged(zipf(1, ExpertPlacement::kBalanced)) / even, 1.125 / h * 4, 1e-6);
}

/// Expert ranks have 8, 4, 2 and 2 of 16 tokens: 2, 1, 0.5 and 0.5 times the mean.
const std::vector<double> kUneven{4, 4, 2, 2, 1, 1, 1, 1};
constexpr std::array<double, 4> kLoads{2, 1, 0.5, 0.5};

// Rows of a rank's experts are its load x 2048 / 2, a multiple of any tile, and 16 SMs have whole
// waves of it: products take time in proportion to the load.
TEST(ExpertRouting, EachRankComputesItsOwnTokens) {
  const SynthesisedJob job = synthesise(plan_of(mixture_job(counted(kUneven), Folding::kNothing)));
  const SynthesisedJob even = synthesise(plan_of(mixture_job(std::nullopt)));
  ASSERT_EQ(job.program.ranks.size(), 4U);
  for (const char* kernel : {"experts up gemm", "experts down gemm"}) {
    const double mean = to_seconds(kernel_time(even.program.ranks[0], kernel));
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_NEAR(to_seconds(kernel_time(job.program.ranks[rank], kernel)), kLoads[rank] * mean,
                  0.02 * mean)
          << kernel << " " << rank;
    }
  }
}

/// Kernels of an iteration on a rank.
double busy_seconds(const program::Program& rank) { return to_seconds(kernel_time(rank, "")); }

// All wait for the busiest rank: its kernels are the iteration, and what others lack is idle.
TEST(ExpertRouting, OthersWaitForTheBusiestRankAtTheAllToAll) {
  const ParallelPlan plan = plan_of(mixture_job(counted(kUneven), Folding::kNothing));
  const SynthesisedJob job = synthesise(plan);
  const double time = seconds(plan, job);
  EXPECT_NEAR(time, busy_seconds(job.program.ranks[0]), 2e-2 * time);
  EXPECT_LT(busy_seconds(job.program.ranks[1]), 0.8 * time);
  EXPECT_LT(busy_seconds(job.program.ranks[2]), busy_seconds(job.program.ranks[1]));
  EXPECT_EQ(busy_seconds(job.program.ranks[2]), busy_seconds(job.program.ranks[3]));
  // Folded, the busiest rank stands for all: the same time.
  EXPECT_NEAR(seconds(mixture_job(counted(kUneven))), time, 1e-3 * time);
}

// The model's work is the mean's, however uneven: FLOP/s fall as the iteration gets longer.
TEST(ExpertRouting, UnevenTokensAreNoMoreWork) {
  const SynthesisedJob even = synthesise(plan_of(mixture_job(std::nullopt)));
  for (const Folding folding : {Folding::kAll, Folding::kNothing}) {
    const SynthesisedJob skewed = synthesise(plan_of(mixture_job(counted(kUneven), folding)));
    EXPECT_NEAR(skewed.model_flops / even.model_flops, 1, 1e-12);
    EXPECT_NEAR(skewed.flops / even.flops, 1, 1e-12);
  }
  EXPECT_GT(seconds(mixture_job(counted(kUneven))), 1.2 * seconds(mixture_job(std::nullopt)));
}

TEST(ExpertRouting, RanksThatTheBusiestStandsForAreCounted) {
  const auto hidden = [](JobRequest request) {
    return synthesise(plan_of(std::move(request)))
        .program.counters.count("synth_expert_ranks_folded");
  };
  EXPECT_EQ(hidden(mixture_job(counted(kUneven))), 3U);
  EXPECT_EQ(hidden(mixture_job(counted(kUneven), Folding::kNothing)), 0U);
  EXPECT_EQ(hidden(mixture_job(zipf(0))), 0U);
  JobRequest twice = mixture_job(counted(kUneven), Folding::kData);
  twice.plan.data = 8;
  set_micro_batches(twice, 1);
  EXPECT_EQ(hidden(twice), 6U);
  // Replicas are folded, context ranks are not: all four expert ranks are there.
  JobRequest context = mixture_job(counted(kUneven), Folding::kData);
  context.plan.data = 2;
  context.plan.context = 4;
  set_micro_batches(context, 1);
  EXPECT_EQ(hidden(context), 0U);
  const SynthesisedJob job = synthesise(plan_of(context));
  ASSERT_EQ(job.program.ranks.size(), 4U);
  EXPECT_LT(busy_seconds(job.program.ranks[3]), busy_seconds(job.program.ranks[0]));
}

TEST(ExpertRouting, AKnownLoadIsTheFirstRanksOfEachGroup) {
  JobRequest request = mixture_job(std::nullopt, Folding::kNothing);
  request.plan.expert_load = 2;  // the others: 2 of 4 over 3
  const ParallelPlan plan = plan_of(request);
  EXPECT_EQ(plan.plan().expert_load, 2);
  EXPECT_NEAR(plan.expert_loads[3], 2.0 / 3, 1e-12);
  EXPECT_EQ(plan.own_kind(1, plan.grid.place(0)), plan.kind_of(1));
  EXPECT_EQ(plan.own_kind(1, plan.grid.place(1)), plan.own_kind(1, plan.grid.place(3)));
  EXPECT_NE(plan.own_kind(1, plan.grid.place(1)), plan.kind_of(1));
  request.plan.expert_load = 4.5;
  EXPECT_THAT(fault_of(request),
              HasSubstr("/expert_load: found 4.5; expected at most \"expert\", 4"));
}

TEST(ExpertRouting, ATableIsReadWhenTheJobIsPlanned) {
  ExpertRouting table;
  table.shares_csv = write_shares("share\n4\n4\n2\n2\n1\n1\n1\n1\n");
  EXPECT_THAT(plan_of(mixture_job(table)).expert_loads, testing::ElementsAre(2, 1, 0.5, 0.5));
  table.shares_csv = write_shares("share\n4\n");
  EXPECT_THAT(fault_of(mixture_job(table)), HasSubstr("/routing/shares: found 1 values"));
}

// A rank whose experts get nothing launches what costs next to nothing.
TEST(ExpertRouting, ARankMayHaveNoTokens) {
  const SynthesisedJob job =
      synthesise(plan_of(mixture_job(counted({1, 1, 1, 1, 1, 1, 0, 0}), Folding::kNothing)));
  EXPECT_LT(kernel_time(job.program.ranks[3], "experts"),
            kernel_time(job.program.ranks[0], "experts") / 4);
}

}  // namespace
}  // namespace bubblesim::synth
