// Folded jobs take as long as those with every rank: to the nanosecond where groups lie on nodes,
// leaves and NICs alike, nearly where they do not.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>

#include "sim/network/topology.hpp"
#include "sim/synth/collective_table.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

/// What nodes of 8 GPUs share.
struct Wiring {
  const char* name;
  std::uint32_t nics = 8;            ///< a node
  std::uint32_t nodes_per_leaf = 8;  ///< of 4 nodes
  hardware::FlowPlacement placement = hardware::FlowPlacement::kSpread;
};

struct FoldCase {
  const char* name;
  std::uint32_t data, tensor, pipeline;
  std::uint32_t context = 1, expert = 1;
  Sharding sharding = Sharding::kNone;
};

class Folded : public testing::TestWithParam<std::tuple<Wiring, FoldCase>> {};

TEST_P(Folded, TakesAsLongAsUnfoldedToTheNanosecond) {
  const auto& [wiring, fold] = GetParam();
  JobRequest request = tiny_job();
  request.model.network = std::get<model::TransformerSpec>(
      model::gpt(1024, 4, 16, 1024, 256).network);
  request.plan.data = fold.data;
  request.plan.tensor = fold.tensor;
  request.plan.pipeline = fold.pipeline;
  request.plan.context = fold.context;
  request.plan.expert = fold.expert;
  request.plan.sharding = fold.sharding;
  request.plan.sequence_parallel = fold.context > 1;
  if (fold.expert > 1) {
    std::get<model::TransformerSpec>(request.model.network).mixture =
        model::MixtureSpec{8, 2, 1024, 0, 0, 1};
  }
  request.plan.micro_batch = 8;
  request.cluster = plain_cluster(1e11);
  request.cluster.gpus_per_node = 8;
  request.cluster.nics = {wiring.nics, BytesPerSecond{2e10}, {}};
  request.cluster.tree.nodes_per_leaf = wiring.nodes_per_leaf;
  request.cluster.tree.oversubscription = 4;
  request.cluster.tree.uplinks = wiring.nics;
  request.cluster.tree.placement = wiring.placement;
  request.software.gradient_norm = GradientNorm::kGlobal;
  set_micro_batches(request, 4);
  request.plan.folding = Folding::kNothing;
  const double whole = seconds(request);
  request.plan.folding = Folding::kAll;
  EXPECT_EQ(seconds(request), whole);
  request.plan.folding = Folding::kData;
  EXPECT_EQ(seconds(request), whole);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Folded,
    testing::Combine(
        testing::Values(Wiring{"own_nics"}, Wiring{"four_nics", 4}, Wiring{"one_nic", 1},
                        Wiring{"leaves", 8, 1}, Wiring{"leaves_of_two", 8, 2},
                        Wiring{"four_nics_and_leaves", 4, 1},
                        Wiring{"planned_uplinks", 4, 1, hardware::FlowPlacement::kPlanned}),
        testing::Values(FoldCase{"data", 4, 1, 1}, FoldCase{"data_over_nodes", 32, 1, 1},
                        FoldCase{"tensor", 1, 8, 1}, FoldCase{"tensor_over_nodes", 1, 16, 1},
                        FoldCase{"pipeline", 1, 1, 4},
                        FoldCase{"data_pipeline", 8, 1, 4},
                        FoldCase{"tensor_data", 4, 8, 1}, FoldCase{"tensor_data_half", 8, 4, 1},
                        FoldCase{"all", 4, 2, 2}, FoldCase{"all_deep", 2, 4, 4},
                        FoldCase{"context", 1, 1, 1, 4},
                        FoldCase{"context_over_nodes", 1, 2, 1, 8},
                        FoldCase{"context_and_all", 2, 2, 2, 4},
                        FoldCase{"experts", 4, 1, 1, 1, 4},
                        FoldCase{"experts_over_nodes", 8, 4, 1, 1, 8},
                        FoldCase{"experts_of_two_groups", 8, 2, 1, 1, 4},
                        FoldCase{"fewer_experts_than_replicas", 8, 2, 2, 1, 4},
                        FoldCase{"experts_and_context", 4, 1, 1, 4, 8},
                        FoldCase{"zero_1", 4, 4, 2, 1, 1, Sharding::kOptimizer},
                        FoldCase{"zero_2", 4, 4, 2, 1, 1, Sharding::kGradients},
                        FoldCase{"zero_3", 4, 4, 2, 1, 1, Sharding::kParameters})),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name;
    });

/// What an all-reduce of 0.8 GB among the replicas of a folded job with 8 tensor ranks and 2
/// replicas, one on each of 2 nodes, asks of its cluster.
network::Transfer folded_all_reduce(const hardware::ClusterSpec& cluster) {
  PlanSpec plan;
  plan.data = 2;
  plan.tensor = 8;
  plan.folding = Folding::kAll;
  return folded_transfer(network::Topology(cluster), network::CollectivePattern::kAllReduce,
                         Bytes{800'000'000}, RankGrid(plan, cluster).data({}), {})
      .transfer;
}

// Of each of 8 rings of 2 ranks 2 x 1/2 x 0.8 GB leave a node. On 8 NICs of 10 GB/s that takes 80
// ms, and twice that where two rings share a NIC; of one NIC's 64 GB 640 ms.
TEST(Folding, TwinsLoadTheNicsThatTheyShare) {
  for (const std::uint32_t nics : {8U, 4U, 2U, 1U}) {
    hardware::ClusterSpec cluster = plain_cluster(1e11);
    cluster.gpus_per_node = 8;
    cluster.nics = {nics, BytesPerSecond{1e10}, {}};
    const network::Topology topology(cluster);
    const network::Transfer transfer = folded_all_reduce(cluster);
    EXPECT_EQ(topology.solo_time(transfer), std::chrono::milliseconds(640 / nics));
    EXPECT_EQ(transfer.shares, 8 / nics);
    // Both nodes' NICs, out and in, and nobody's port.
    EXPECT_EQ(transfer.loads.size(), 4U);
  }
}

// A NIC each, and both nodes' up-links with a quarter of their NICs' 80 GB/s: 8 x 0.8 GB take 320
// ms.
TEST(Folding, TwinsLoadTheUplinksThatTheyShare) {
  hardware::ClusterSpec cluster = plain_cluster(1e11);
  cluster.gpus_per_node = 8;
  cluster.nics = {8, BytesPerSecond{1e10}, {}};
  cluster.tree.nodes_per_leaf = 1;
  cluster.tree.oversubscription = 4;
  const network::Transfer transfer = folded_all_reduce(cluster);
  EXPECT_EQ(network::Topology(cluster).solo_time(transfer), std::chrono::milliseconds(320));
  EXPECT_EQ(transfer.shares, 8);
}

// Sizes that mostly do not divide the nodes' 4 GPUs, on at most 24 of them.
JobRequest odd_job(std::mt19937& random) {
  const auto up_to = [&random](std::uint32_t most) {
    return 1 + static_cast<std::uint32_t>(random() % most);
  };
  JobRequest request = tiny_job();
  request.model.network = std::get<model::TransformerSpec>(
      model::gpt(768, 6, 12, 1024, 144).network);
  do {
    request.plan.data = up_to(4);
    request.plan.tensor = up_to(4);
    request.plan.context = up_to(3);
    request.plan.pipeline = up_to(3);
  } while (request.plan.world_size() > 24 || request.plan.world_size() < 5);
  request.plan.sequence_parallel = request.plan.tensor > 1 && up_to(2) == 2;
  request.plan.sharding = static_cast<Sharding>(up_to(4) - 1);
  request.plan.micro_batch = 8;
  request.cluster = plain_cluster(5e10);
  request.cluster.nodes = 6;
  request.cluster.nics = {1U << (up_to(3) - 1), BytesPerSecond{2e10}, {}};
  request.cluster.tree.nodes_per_leaf = 2 * up_to(3);  // 6: one leaf
  request.cluster.tree.oversubscription = up_to(4);
  request.software.gradient_norm = GradientNorm::kGlobal;
  set_micro_batches(request, 8);
  return request;
}

TEST(Folding, OddJobsTakeAsLongAsUnfoldedWithinAPercent) {
  std::mt19937 random(1);
  std::uint64_t apart = 0;
  for (int i = 0; i < 30; ++i) {
    JobRequest request = odd_job(random);
    request.plan.folding = Folding::kNothing;
    const double whole = seconds(request);
    for (const Folding folding : {Folding::kAll, Folding::kData}) {
      request.plan.folding = folding;
      const ParallelPlan plan = plan_of(request);
      const SynthesisedJob job = synthesise(plan);
      apart += job.program.counters.count(kFoldedApart.name) > 0 ? 1 : 0;
      // Not equal where a group is the slow one of an exchange and a twin is that of another.
      const double ratio = seconds(plan, job) / whole;
      const PlanSpec& p = request.plan;
      EXPECT_GT(ratio, 0.99) << p.data << " " << p.tensor << " " << p.context << " " << p.pipeline;
      EXPECT_LT(ratio, 1.01) << p.data << " " << p.tensor << " " << p.context << " " << p.pipeline;
    }
  }
  EXPECT_GT(apart, 5U);
}

// On nodes of 4 GPUs, 3 tensor ranks: 0 to 2 are on a node, 3 | 4 5 are not.
TEST(Folding, TheGroupThatStraddlesANodeStandsForTheOneThatDoesNot) {
  JobRequest request = tiny_job();
  request.plan.data = 2;
  request.plan.tensor = 3;
  request.cluster = plain_cluster(1e11);
  request.cluster.nics.bandwidth = BytesPerSecond{1e9};
  const network::Topology topology(request.cluster);
  const RankGrid grid(request.plan, request.cluster);
  const FoldedTransfer folded =
      folded_transfer(topology, network::CollectivePattern::kAllGather, Bytes{3'000'000},
                      grid.tensor({}), {});
  EXPECT_EQ(folded.twins, Twins::kApart);
  // A ring passes on two thirds of 3 MB over the NIC of the one GPU at 1 GB/s: 2 ms.
  EXPECT_EQ(topology.solo_time(folded.transfer), std::chrono::milliseconds(2));
}

TEST(Folding, GroupsThatLieAlikeKeepTheTransferOfTheFirst) {
  JobRequest request = tiny_job();
  request.plan.data = 4;
  request.plan.tensor = 2;
  request.cluster = plain_cluster(1e11);
  const network::Topology topology(request.cluster);
  const Communicator tensor = RankGrid(request.plan, request.cluster).tensor({});
  const auto kind = network::CollectivePattern::kAllReduce;
  const FoldedTransfer folded = folded_transfer(topology, kind, Bytes{1'000'000}, tensor, {});
  EXPECT_EQ(folded.twins, Twins::kAlike);
  EXPECT_EQ(topology.solo_time(folded.transfer),
            topology.solo_time(topology.plan(kind, Bytes{1'000'000}, tensor.group)));
}

}  // namespace
}  // namespace bubblesim::synth
