// Jobs whose groups straddle nodes: the folded ones take as long as those with every rank.
#include <gtest/gtest.h>

#include <random>

#include "sim/network/topology.hpp"
#include "sim/synth/collective_table.hpp"
#include "sim/synth/folded_transfer.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

// Sizes that mostly do not divide the nodes' 4 GPUs, on at most 24 of them.
JobRequest odd_job(std::mt19937& random) {
  const auto up_to = [&random](std::uint32_t most) {
    return 1 + static_cast<std::uint32_t>(random() % most);
  };
  JobRequest request = tiny_job();
  request.model.network = std::get<model::TransformerSpec>(
      model::gpt(768, 6, 12, 1024, 240).network);
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
  request.cluster.nics = {up_to(2) == 2 ? 4U : 1U, BytesPerSecond{2e10}, {}};
  request.cluster.tree.nodes_per_leaf = 6;
  request.software.gradient_norm = GradientNorm::kGlobal;
  set_micro_batches(request, 8);
  return request;
}

TEST(Folding, OddJobsTakeAsLongAsUnfoldedWithinThreePercent) {
  std::mt19937 random(1);
  std::uint64_t apart = 0;
  for (int i = 0; i < 25; ++i) {
    JobRequest request = odd_job(random);
    request.plan.folding = Folding::kNothing;
    const double whole = seconds(request);
    for (const Folding folding : {Folding::kAll, Folding::kData}) {
      request.plan.folding = folding;
      const ParallelPlan plan = plan_of(request);
      const SynthesisedJob job = synthesise(plan);
      apart += job.program.counters.count(kFoldedApart.name) > 0 ? 1 : 0;
      // Too long where replicas have their slow groups in different stages.
      const double ratio = seconds(plan, job) / whole;
      const PlanSpec& p = request.plan;
      EXPECT_GT(ratio, 0.99) << p.data << " " << p.tensor << " " << p.context << " " << p.pipeline;
      EXPECT_LT(ratio, 1.03) << p.data << " " << p.tensor << " " << p.context << " " << p.pipeline;
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
      folded_transfer(topology, network::CollectiveKind::kAllGather, Bytes{3'000'000},
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
  const auto kind = network::CollectiveKind::kAllReduce;
  const FoldedTransfer folded = folded_transfer(topology, kind, Bytes{1'000'000}, tensor, {});
  EXPECT_EQ(folded.twins, Twins::kAlike);
  EXPECT_EQ(topology.solo_time(folded.transfer),
            topology.solo_time(topology.plan(kind, Bytes{1'000'000}, tensor.group)));
}

}  // namespace
}  // namespace bubblesim::synth
