// Device memory of ranks.
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "sim/network/topology.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/rank_memory.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

ParallelPlan pipeline_of(const char* schedule, std::uint32_t p, std::uint32_t m) {
  return plan_of(pipelined(p, schedule, m, 16));
}

TEST(Memory, IsSixteenBytesAParameterWithAdam) {
  const ParallelPlan plan = plan_of(tiny_job());
  const StaticMemory memory = static_memory(plan, 0);
  EXPECT_EQ(memory.parameters, 2 * kElements);
  EXPECT_EQ(memory.gradients, 2 * kElements);
  EXPECT_EQ(memory.optimizer, 12 * kElements);
}

// Rajbhandari et al. 2020: 4 + 12/n, 2 + 14/n, 16/n bytes a parameter.
TEST(Memory, ShardsAreDividedByTheReplicas) {
  const auto bytes = [](Sharding sharding) {
    return static_memory(plan_of(replicated(8, 1, sharding)), 0).total() / kElements;
  };
  EXPECT_NEAR(bytes(Sharding::kNone), 16, 1e-9);
  EXPECT_NEAR(bytes(Sharding::kOptimizer), 4 + 12.0 / 8, 1e-9);
  EXPECT_NEAR(bytes(Sharding::kGradients), 2 + 14.0 / 8, 1e-9);
  EXPECT_NEAR(bytes(Sharding::kParameters), 16.0 / 8, 1e-9);
}

// The gradients of the stage whose run is under way are whole.
TEST(Memory, GradientShardsOfAPipelineHoldAStageWhole) {
  JobRequest request = replicated(8, 4, Sharding::kGradients);
  request.plan.pipeline = 2;
  const double half = 4 * (4096.0 * 4096 + 4096);
  EXPECT_NEAR(static_memory(plan_of(request), 0).gradients, 2 * half, 1e-9);
  request.plan.schedule = "interleaved";
  request.plan.chunks = 2;
  EXPECT_NEAR(static_memory(plan_of(request), 0).gradients, 2 * (half / 2 + half / 8), 1e-9);
}

// Of 8 micro-batches on 4 stages: all by GPipe, 4 - s by 1F1B.
TEST(Memory, SchedulesHoldMicroBatchesUntilTheirBackwardPass) {
  const ParallelPlan gpipe = pipeline_of("gpipe", 4, 8);
  const ParallelPlan alternating = pipeline_of("1f1b", 4, 8);
  for (std::uint32_t s = 0; s < 4; ++s) {
    EXPECT_EQ(memory_need(gpipe, s).activations, 8 * activation_bytes(gpipe, s).forward);
    EXPECT_EQ(memory_need(alternating, s).activations,
              (4 - s) * activation_bytes(alternating, s).forward);
  }
}

TEST(Memory, ASplitBackwardPassKeepsWhatItsSecondHalfNeeds) {
  const ParallelPlan plan = pipeline_of("zb-h1", 4, 8);
  HeldActivations held(plan);
  const KeptBytes kept = activation_bytes(plan, 0);
  held.begin_action(pipeline::forward(0, 0));
  EXPECT_EQ(held.bytes(), kept.forward);
  held.end_action(pipeline::input_grad(0, 0));
  EXPECT_EQ(held.bytes(), kept.after_input_grad);
  held.end_action(pipeline::weight_grad(0, 0));
  EXPECT_EQ(held.bytes(), 0);
}

double greatest_mark(const program::Program& rank) {
  std::uint64_t most = 0;
  for (const program::MemoryMark& mark : rank.memory) most = std::max(most, mark.bytes);
  return static_cast<double>(most);
}

// Their peak: TheGreatestMarkIsTheNeedOfEveryPlan.
TEST(Memory, MarksComeInOrderAndComeBack) {
  const ParallelPlan plan = pipeline_of("1f1b", 4, 8);
  const SynthesisedJob job = synthesise(plan);
  for (std::uint32_t s = 0; s < 4; ++s) {
    const auto& marks = job.program.ranks[s].memory;
    ASSERT_FALSE(marks.empty());
    EXPECT_EQ(marks.front().bytes, marks.back().bytes);
    EXPECT_TRUE(std::is_sorted(marks.begin(), marks.end(),
                               [](const auto& a, const auto& b) { return a.op < b.op; }));
  }
}

// What a trace of the job says is what fillers beside it may not have.
TEST(Memory, TheGreatestMarkIsTheNeedOfEveryPlan) {
  const JobRequest sharded = replicated(8, 2, Sharding::kParameters);
  JobRequest offloaded = sharded;
  offloaded.plan.host.activations = 0.8;
  offloaded.plan.host.bandwidth = BytesPerSecond{25e9};
  std::vector<ParallelPlan> plans;
  for (const JobRequest& request : {replicated(8, 2), sharded, offloaded}) {
    plans.push_back(plan_of(request));
  }
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "dualpipev", "chimera"}) {
    plans.push_back(pipeline_of(schedule, 4, 8));
  }
  for (const ParallelPlan& plan : plans) {
    const SynthesisedJob job = synthesise(plan);
    for (std::size_t i = 0; i < job.program.ranks.size(); ++i) {
      EXPECT_GT(job.memory[i].working, 0) << plan.schedule.name;
      EXPECT_NEAR(greatest_mark(job.program.ranks[i]), job.memory[i].total(), 1)
          << plan.schedule.name << " rank " << i;
    }
  }
}

// Gradients of a layer's inputs and outputs, of 1024 x 4096 numbers of 2 bytes each, are needed
// while the backward pass of the only micro-batch runs, and no longer.
TEST(Memory, WorkingMemoryIsMarkedWhileABackwardPassRuns) {
  const ParallelPlan plan = plan_of(tiny_job());
  const SynthesisedJob job = synthesise(plan);
  const MemoryNeed& need = job.memory[0];
  std::vector<double> marks;
  for (const program::MemoryMark& mark : job.program.ranks[0].memory) {
    marks.push_back(static_cast<double>(mark.bytes));
  }
  const double fixed = need.fixed.total();
  EXPECT_EQ(need.working, 2 * 1024 * 4096 * 2);
  EXPECT_EQ(marks, (std::vector<double>{fixed, fixed + need.activations, need.total(), fixed}));
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

// ZeRO++ (arXiv 2306.10209): second copies inside nodes and fewer bytes on the wire; traffic by
// closed forms.

using testing::HasSubstr;

/// ZeRO-3 on 16 GPUs: 4 nodes of 4.
JobRequest sharded_job() { return replicated(16, 1, Sharding::kParameters); }

JobRequest zero_plus_job() {
  JobRequest request = sharded_job();
  request.plan.parameters = {.secondary = 4, .element_bytes = 1};
  request.plan.gradients.element_bytes = 0.5;
  return request;
}

/// Bytes over these links in an iteration.
double bytes_over(const JobRequest& request, const std::vector<network::LinkId>& links) {
  const SynthesisedJob job = synthesise(plan_of(request));
  double bytes = 0;
  for (const workload::JoinedCollective& collective : job.program.collectives) {
    for (const network::LinkLoad& load : job.program.transfers[collective.transfer].loads) {
      if (std::ranges::find(links, load.link) != links.end()) bytes += load.bytes;
    }
  }
  return bytes;
}

/// Bytes that leave the first node in an iteration.
double bytes_between_nodes(const JobRequest& request) {
  const network::Topology topology(request.cluster);
  std::vector<network::LinkId> nics;
  for (std::uint32_t gpu = 0; gpu < 4; ++gpu) {
    nics.push_back(topology.nic(gpu, network::Direction::kOut));
  }
  return bytes_over(request, nics);
}

// A ring of R ranks carries (R - 1) / R of an array out of each node. ZeRO-3: parameters twice and
// gradients once, 2 bytes each. Arrays are rounded to whole bytes, one a layer.
TEST(ZeroPlus, TrafficBetweenNodesIsThatOfThePaper) {
  const double ring = 15.0 / 16;
  EXPECT_NEAR(bytes_between_nodes(sharded_job()), 6 * kElements * ring, 30);
  EXPECT_NEAR(bytes_between_nodes(zero_plus_job()), 1.5 * kElements * ring, 30);  // a quarter

  JobRequest second_copy = sharded_job();
  second_copy.plan.parameters.secondary = 4;
  EXPECT_NEAR(bytes_between_nodes(second_copy), 4 * kElements * ring, 30);

  JobRequest quantised = sharded_job();
  quantised.plan.parameters.element_bytes = 1;  // both gathers: there is no second copy
  EXPECT_NEAR(bytes_between_nodes(quantised), 4 * kElements * ring, 30);
}

/// Three levels: packages of 2 GPUs with a link of their own, nodes of 2 packages, 4 nodes. No rank
/// is folded, so that loads are on the links of every rank.
JobRequest packaged_job(std::uint32_t primary, std::uint32_t secondary = 0) {
  JobRequest request = sharded_job();
  request.cluster.node.kind = hardware::NodeLink::kPairs;
  request.cluster.node.pair_bandwidth = request.cluster.node.bandwidth;
  request.plan.parameters.primary = primary;
  request.plan.parameters.secondary = secondary;
  request.plan.folding = Folding::kNothing;
  return request;
}

/// Bytes out of the first GPU to the other one of its package, by their own link, in an iteration.
double bytes_in_package(const JobRequest& request) {
  const network::Topology topology(request.cluster);
  return bytes_over(request, {topology.pair_port(0, network::Direction::kOut)});
}

// With P parameters of 2 bytes on 16 GPUs. Between nodes go the gradients of all replicas, 2 P x
// 15/16, and what was updated. Packages as holders: of 8 that hold the same half of P, 2 are on
// each node; the 2 halves take 2 x 2 P/2 x 7/8. Nodes as holders: of 4 that hold the same quarter 1
// is on each node; the 4 quarters take 4 x 2 P/4 x 3/4. Inside a package a gather of 2 moves half
// of 2 P out of each.
TEST(ZeroPlus, FirstCopiesInsideANodeKeepGathersThere) {
  const double gradients = 2 * kElements * 15 / 16;
  EXPECT_NEAR(bytes_between_nodes(packaged_job(0)), 3 * gradients, 30);
  EXPECT_NEAR(bytes_between_nodes(packaged_job(2)), gradients + 2 * kElements * 7 / 8, 30);
  EXPECT_NEAR(bytes_between_nodes(packaged_job(4)), gradients + 2 * kElements * 3 / 4, 30);
  EXPECT_NEAR(bytes_between_nodes(packaged_job(4, 2)), bytes_between_nodes(packaged_job(4)), 30);
  EXPECT_NEAR(bytes_in_package(packaged_job(0)), 0, 1);
  EXPECT_NEAR(bytes_in_package(packaged_job(2)), 2 * kElements, 30);      // both passes
  EXPECT_NEAR(bytes_in_package(packaged_job(4)), 0, 1);
  EXPECT_NEAR(bytes_in_package(packaged_job(4, 2)), kElements, 30);  // backward passes
}

// ZeRO-3 gathers for each micro-batch, holders inside a node once an iteration between nodes:
// of 4 micro-batches only gradients cross them four times.
TEST(ZeroPlus, MoreMicroBatchesGatherNoMoreBetweenNodes) {
  JobRequest request = packaged_job(2);
  set_micro_batches(request, 4);
  EXPECT_NEAR(bytes_between_nodes(request), 2 * kElements * (4 * 15.0 / 16 + 7.0 / 8), 100);
}

TEST(ZeroPlus, AFirstCopyOfFewerTakesMoreMemory) {
  const auto memory = [](std::uint32_t primary) {
    return static_memory(plan_of(packaged_job(primary)), 0).total();
  };
  EXPECT_NEAR(memory(2) - memory(0), 2 * kElements * (1.0 / 2 - 1.0 / 16), 1);
}

TEST(ZeroPlus, ASecondCopyTakesItsPartOfTheParameters) {
  const double more = static_memory(plan_of(zero_plus_job()), 0).total() -
                      static_memory(plan_of(sharded_job()), 0).total();
  EXPECT_NEAR(more, 2 * kElements / 4, 1);
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
  for (JobRequest request : {zero_plus_job(), packaged_job(2)}) {
    request.plan.folding = Folding::kAll;
    const double folded = seconds(request);
    request.plan.folding = Folding::kNothing;
    EXPECT_NEAR(folded / seconds(request), 1, 1e-3);
  }
}

TEST(ZeroPlus, WhatMakesNoSenseIsRefused) {
  JobRequest unsharded = zero_plus_job();
  unsharded.plan.sharding = Sharding::kGradients;
  EXPECT_THAT(fault_of(unsharded), HasSubstr("/parameters: says how sharded parameters"));
  JobRequest uneven = zero_plus_job();
  uneven.plan.parameters.secondary = 5;
  EXPECT_THAT(fault_of(uneven),
              HasSubstr("/parameters/secondary: found 5; expected a divisor of data x context"));
  EXPECT_THAT(fault_of(packaged_job(3)),
              HasSubstr("/parameters/primary: found 3; expected a divisor of data x context = 16"));
  EXPECT_THAT(fault_of(packaged_job(2, 4)),
              HasSubstr("/parameters/secondary: found 4; expected a divisor of "
                        "parameters/primary = 2"));
  EXPECT_EQ(fault_of(packaged_job(4, 2)), "none");
}

// 12 replicas on nodes of 4: runs of 3 and 6 lie on parts of two nodes.
TEST(ZeroPlus, ASecondCopyLiesInsideANodeOrOnWholeNodes) {
  JobRequest request = zero_plus_job();
  request.plan.data = 12;
  set_micro_batches(request, 1);
  for (const std::uint32_t ranks : {3U, 6U}) {
    request.plan.parameters.secondary = ranks;
    EXPECT_THAT(fault_of(request), HasSubstr("neighbours that lie inside a node")) << ranks;
  }
  for (const std::uint32_t ranks : {1U, 2U, 4U, 12U}) {
    request.plan.parameters.secondary = ranks;
    EXPECT_EQ(fault_of(request), "none") << ranks;
  }
}

TEST(ZeroPlus, KeysAreReadAndMayBeLeftOut) {
  const auto with = must(parse_plan(R"({"global_batch": 16, "data": 16, "sharding": "parameters",
      "parameters": {"primary": 16, "secondary": 8}, "gradients": {"element_bytes": 0.5}})", "p"));
  EXPECT_EQ(with.parameters.primary, 16U);
  EXPECT_EQ(with.parameters.secondary, 8U);
  EXPECT_EQ(with.parameters.element_bytes, 2);
  EXPECT_EQ(with.gradients.element_bytes, 0.5);
  const auto without = must(parse_plan(R"({"global_batch": 1})", "p"));
  EXPECT_EQ(without.parameters.secondary, 0U);
  EXPECT_EQ(without.parameters.element_bytes, 0);
}

}  // namespace
}  // namespace bubblesim::synth
