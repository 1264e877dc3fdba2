// Pipelines whose stages form a graph (GraphPipe, arXiv 2406.17145).
#include <gmock/gmock.h>

#include <random>
#include <string>
#include <tuple>

#include "sim/model/model_spec.hpp"
#include "sim/network/topology.hpp"
#include "sim/synth/collective_table.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/stage_layers.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

GraphStageSpec stage(std::uint32_t first, std::uint32_t last, std::vector<std::uint32_t> after,
                     std::uint32_t micro_batch = 1) {
  return {first, last, {}, std::move(after), micro_batch};
}

// Two branches of 8 layers (0 to 7, 8 to 15), then join and output (16, 17).
JobRequest two_branches(std::vector<GraphStageSpec> stages) {
  JobRequest request = tiny_job();
  request.model = linear_layers(8, 2);
  request.plan.pipeline = static_cast<std::uint32_t>(stages.size());
  request.plan.schedule = "graph";
  request.plan.stages = std::move(stages);
  set_micro_batches(request, 8);
  return request;
}

std::vector<GraphStageSpec> chain() {
  return {stage(0, 4, {}), stage(4, 8, {0}), stage(8, 12, {1}), stage(12, 16, {2}),
          stage(16, 18, {3})};
}

std::vector<GraphStageSpec> branches(std::uint32_t size = 1) {
  return {stage(0, 4, {}, size), stage(4, 8, {0}, size), stage(8, 12, {}, size),
          stage(12, 16, {2}, size), stage(16, 18, {1, 3}, size)};
}

TEST(GraphPipeline, ParallelBranchesHaveAShorterWarmUp) {
  const ParallelPlan chained = plan_of(two_branches(chain()));
  const ParallelPlan two = plan_of(two_branches(branches()));
  EXPECT_EQ(pipeline::depth(chained.graph), 5U);
  EXPECT_EQ(pipeline::depth(two.graph), 3U);
  const double long_way = seconds(chained, synthesise(chained));
  const double short_way = seconds(two, synthesise(two));
  // Both have 8 micro-batches of equal stages: about 8 + 4 slots against 8 + 2.
  EXPECT_NEAR(long_way / short_way, 12.0 / 10, 0.06);
  EXPECT_NEAR((short_way - optimizer_seconds(synthesise(two).program.ranks[0])) /
                  table_seconds(two), 1, 0.03);
}

TEST(GraphPipeline, AnOutputIsRelayedWhereThereIsNoEdge) {
  const ParallelPlan plan = plan_of(two_branches(chain()));
  const double stage = 1024.0 * 4096 * 2;
  // The first branch's output goes on beside the second branch's.
  EXPECT_EQ(plan.stages[0].sent_bytes[0], stage);
  EXPECT_EQ(plan.stages[1].sent_bytes[0], stage);
  EXPECT_EQ(plan.stages[2].sent_bytes[0], 2 * stage);
  EXPECT_EQ(plan.stages[3].sent_bytes[0], 2 * stage);
}

TEST(GraphPipeline, LargerMicroBatchesHaveLargerAndFewerKernels) {
  const ParallelPlan ones = plan_of(two_branches(branches()));
  const ParallelPlan twos = plan_of(two_branches(branches(2)));
  const SynthesisedJob a = synthesise(ones);
  const SynthesisedJob b = synthesise(twos);
  EXPECT_NEAR(b.flops / a.flops, 1, 1e-9);
  EXPECT_EQ(twos.graph.stages[0].micro_batches, 4U);
  EXPECT_EQ(activation_bytes(twos, 0).forward, 2 * activation_bytes(ones, 0).forward);
  EXPECT_EQ(bytes_of_kind(a, traces::CollectiveKind::kSend),
            bytes_of_kind(b, traces::CollectiveKind::kSend));
  EXPECT_LT(b.program.ranks[0].ops.size(), a.program.ranks[0].ops.size());
}

TEST(GraphPipeline, StagesWithDifferentMicroBatchesRunToTheEnd) {
  for (const std::uint32_t last : {1U, 2U, 4U}) {
    auto stages = branches();
    stages[2].micro_batch = stages[3].micro_batch = 2;
    stages[4].micro_batch = last;
    const ParallelPlan plan = plan_of(two_branches(stages));
    const SynthesisedJob job = synthesise(plan);
    EXPECT_TRUE(time_alone(job.program, plan.request.gpu)) << last;
    // What is sent does not depend on how it is cut: 4 edges, both ways, 8 micro-batches.
    EXPECT_EQ(bytes_of_kind(job, traces::CollectiveKind::kSend), 4 * 2 * 8 * 1024.0 * 4096 * 2);
  }
}

// The last stage takes 300 micro-batches of the others at once: its first kernel waits for 600
// receives, on the two streams that they came by.
TEST(GraphPipeline, AKernelWaitsForMoreReceivesThanItHasEdges) {
  auto stages = branches();
  stages[4].micro_batch = 300;
  JobRequest request = two_branches(stages);
  set_micro_batches(request, 300);
  const ParallelPlan plan = plan_of(request);
  const SynthesisedJob job = synthesise(plan);
  EXPECT_TRUE(time_alone(job.program, plan.request.gpu));
  EXPECT_EQ(bytes_of_kind(job, traces::CollectiveKind::kSend), 4 * 2 * 300 * 1024.0 * 4096 * 2);
}

TEST(GraphPipeline, ShippedModelsRunByNamesOfBranches) {
  for (const auto& [model, branch, count] :
       {std::tuple{"mmt", "modality", 4}, std::tuple{"candle-uno", "feature", 7}}) {
    JobRequest request = tiny_job();
    request.model = *model::find_model(model, std::string(BUBBLESIM_SOURCE_DIR) +
                                                  "/configs/models");
    GraphStageSpec join;
    join.branches = {"join"};
    for (int i = 0; i < count; ++i) {
      GraphStageSpec stage;
      stage.branches = {std::string(branch) + "/" + std::to_string(i)};
      request.plan.stages.push_back(stage);
      join.after.push_back(static_cast<std::uint32_t>(i));
    }
    request.plan.stages.push_back(join);
    request.plan.pipeline = static_cast<std::uint32_t>(count + 1);
    request.plan.schedule = "graph";
    request.plan.micro_batch = 4;
    set_micro_batches(request, 8);
    const double parallel = seconds(request);
    for (std::uint32_t i = 1; i < request.plan.pipeline; ++i) {
      request.plan.stages[i].after = {i - 1};
    }
    EXPECT_LT(parallel, seconds(request)) << model;
  }
}

TEST(GraphPipeline, FaultsOfStages) {
  auto stages = branches();
  stages[4].after = {1};
  EXPECT_THAT(fault_of(two_branches(stages)),
              HasSubstr("/stages/4/after: stage 4 reads layer 15, which is in stage 3; expected 3 "
                        "in \"after\""));
  stages = branches();
  stages[3].first = 13;
  EXPECT_THAT(fault_of(two_branches(stages)), HasSubstr("layers 12 to 12 are in no stage"));
  stages = branches();
  stages[3].first = 11;
  EXPECT_THAT(fault_of(two_branches(stages)), HasSubstr("layer 11 is in two stages"));
  stages = branches();
  stages[4].last = 20;
  EXPECT_THAT(fault_of(two_branches(stages)), HasSubstr("the model has 18"));
  stages = branches();
  stages[0].after = {4};
  EXPECT_THAT(fault_of(two_branches(stages)), HasSubstr("cycle"));
  stages = branches(3);
  EXPECT_THAT(fault_of(two_branches(stages)), HasSubstr("nearest: 6 or 9"));
  stages = branches();
  stages[0] = {0, 0, {"dens/0"}, {}, 1};
  EXPECT_THAT(fault_of(two_branches(stages)), HasSubstr("did you mean \"dense/0\"?"));
}

// An embedding, 4 blocks and an output layer: 0 to 5, each of which reads the one before.
JobRequest decoder(std::vector<GraphStageSpec> stages) {
  JobRequest request = two_branches(std::move(stages));
  request.model = {"small decoder", llama_like(4, 1024)};
  request.plan.sequence = 256;
  request.plan.micro_batch = 4;
  set_micro_batches(request, 8);
  return request;
}

TEST(GraphPipeline, StagesOfAModelInARowFollowItsLayers) {
  EXPECT_THAT(fault_of(decoder({stage(0, 3, {}), stage(3, 6, {})})),
              HasSubstr("/stages/1/after: stage 1 reads layer 2, which is in stage 0; expected 0 "
                        "in \"after\", or a stage that comes after it"));
  EXPECT_THAT(fault_of(decoder({stage(0, 3, {1}), stage(3, 6, {})})),
              HasSubstr("/stages/1/after: stage 1 reads layer 2, which is in stage 0"));
  EXPECT_THAT(fault_of(decoder({stage(0, 2, {}), stage(2, 4, {0}), stage(4, 6, {0})})),
              HasSubstr("/stages/2/after: stage 2 reads layer 3, which is in stage 1"));
  const ParallelPlan plan = plan_of(decoder({stage(0, 3, {}), stage(3, 6, {0})}));
  EXPECT_EQ(plan.stages[0].sent_bytes, std::vector<double>{4 * 256 * 1024 * 2});
}

TEST(GraphPipeline, IsReadFromPlans) {
  const auto plan = parse_plan(R"({"pipeline": 2, "global_batch": 8, "schedule": "graph",
      "stages": [{"layers": [0, 4]}, {"branches": ["join"], "after": [0], "micro_batch": 2}]})",
                               "here");
  ASSERT_TRUE(plan) << plan.error().front().text();
  ASSERT_EQ(plan->stages.size(), 2U);
  EXPECT_EQ(plan->stages[0].last, 4U);
  EXPECT_EQ(plan->stages[1].branches, std::vector<std::string>{"join"});
  EXPECT_EQ(plan->stages[1].after, std::vector<std::uint32_t>{0});
  EXPECT_EQ(plan->stages[1].micro_batch, 2U);
}

// Folded jobs take as long as those with every rank: to the nanosecond where groups lie on nodes,
// leaves and NICs alike, nearly where they do not.

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
