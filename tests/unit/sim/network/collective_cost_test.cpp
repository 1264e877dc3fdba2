#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

#include "sim/hardware/cluster_spec.hpp"
#include "sim/network/collective_cost.hpp"
#include "sim/network/topology.hpp"

namespace bubblesim::network {
namespace {

constexpr Duration us(double microseconds) {
  return Duration{static_cast<std::int64_t>(microseconds * 1000)};
}

/// Nodes of 8 GPUs with 100 GB/s ports and 8 NICs of 10 GB/s; NCCL's own latencies; LL and LL128
/// switched off by a share so small that Simple is always taken.
hardware::ClusterSpec round_cluster(std::uint32_t nodes = 1) {
  hardware::ClusterSpec spec;
  spec.name = "round";
  spec.gpus_per_node = 8;
  spec.nodes = nodes;
  spec.node.bandwidth = {100e9};
  spec.nics = {8, {10e9}, Duration{0}};
  spec.tree.nodes_per_leaf = 1U << 20U;
  hardware::CollectiveSpec& costs = spec.collectives;
  costs.ring_base = {us(6.6), us(14), us(8.4)};
  costs.tree_base = {us(6.8), us(14), us(8.4)};
  costs.ring_hop = {us(0.6), us(1.9), us(3.4)};
  costs.tree_hop = {us(0.6), us(1.25), us(4)};
  costs.ring_net_hop = {us(2.7), us(4), us(14)};
  costs.tree_net_hop = {us(5), us(8.5), us(14)};
  costs.bandwidth_share = {1e-3, 1e-3, 1};
  costs.nvls_hop = us(25);
  costs.nvls_net_hop = us(20.9);
  costs.p2p_base = us(8.4);
  costs.node_channels = 24;
  costs.net_channels = 16;
  costs.p2p_channels = 2;
  return spec;
}

// What collectives cost, against numbers worked out by hand.

constexpr Bytes kBig{800000000};  // 0.8 GB

Duration moving(const Topology& topology, const Transfer& transfer) {
  return topology.solo_time(transfer) - transfer.latency;
}

Transfer plan_all_reduce(const Topology& topology, const Group& group, Bytes bytes = kBig) {
  return topology.plan(CollectivePattern::kAllReduce, bytes, group);
}

/// Of 0.8 GB, without latencies.
Duration all_reduce_time(const hardware::ClusterSpec& spec, const Group& group) {
  const Topology topology(spec);
  return moving(topology, plan_all_reduce(topology, group));
}

double load_of(const Transfer& transfer, LinkId link) {
  double bytes = 0;
  for (const LinkLoad& load : transfer.loads) {
    if (load.link == link) bytes += load.bytes;
  }
  return bytes;
}

TEST(CollectiveCost, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(CollectivePattern::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectivePattern::kAllGather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(CollectivePattern::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectivePattern::kAllToAll, 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(CollectivePattern::kBroadcast, 8), 1.0);
}

// 8.4 + 14 steps of 3.4 = 56 us; 0.8 GB x 14/8 over 100 GB/s = 14 ms.
TEST(CollectiveCost, ARingOfEightHasFourteenSteps) {
  const Topology topology(round_cluster());
  const Transfer ring = plan_all_reduce(topology, strided_group(0, 8));
  EXPECT_EQ(ring.algorithm, Algorithm::kRing);
  EXPECT_EQ(ring.latency, us(56));
  EXPECT_EQ(moving(topology, ring), us(14000));
  EXPECT_EQ(load_of(ring, topology.port(3, Direction::kOut)), 1.4e9);
  EXPECT_EQ(load_of(ring, topology.port(3, Direction::kIn)), 1.4e9);
}

// Half of the steps and of the bytes: 8.4 + 7 x 3.4 = 32.2 us and 7 ms.
TEST(CollectiveCost, GatherAndScatterAreHalfAnAllReduce) {
  const Topology topology(round_cluster());
  for (const auto kind : {CollectivePattern::kAllGather, CollectivePattern::kReduceScatter}) {
    const Transfer half = topology.plan(kind, kBig, strided_group(0, 8));
    EXPECT_EQ(half.latency, us(32.2));
    EXPECT_EQ(moving(topology, half), us(7000));
  }
}

TEST(CollectiveCost, NobodyToTalkToCostsNothing) {
  const Topology topology(round_cluster());
  EXPECT_EQ(topology.solo_time(plan_all_reduce(topology, strided_group(5, 1))), Duration{0});
  EXPECT_EQ(topology.solo_time(plan_all_reduce(topology, strided_group(0, 8), Bytes{0})),
            Duration{0});
}

// Two nodes of eight: 0.8 GB x 2 x 15/16 = 1.5 GB leave each node over 8 NICs of 10 GB/s.
TEST(CollectiveCost, BetweenNodesTheNicsSetTheTime) {
  const Topology topology(round_cluster(2));
  const Transfer ring =
      topology.plan(CollectivePattern::kAllReduce, kBig, strided_group(0, 16), Algorithm::kRing);
  EXPECT_DOUBLE_EQ(load_of(ring, topology.nic(0, Direction::kOut)), 1.5e9 / 8);
  EXPECT_EQ(moving(topology, ring), us(18750));
  // 30 steps, of which 2 between nodes.
  EXPECT_EQ(ring.latency, us(8.4 + 28 * 3.4 + 2 * 14));
}

// 64 nodes: a flat ring has 1022 steps, the hierarchy 14 inside and 126 between.
TEST(CollectiveCost, AHierarchyHasFewerStepsThanARing) {
  const Topology topology(round_cluster(64));
  const Group all = strided_group(0, 512);
  const Transfer ring = topology.plan(CollectivePattern::kAllReduce, kBig, all, Algorithm::kRing);
  const Transfer hierarchy =
      topology.plan(CollectivePattern::kAllReduce, kBig, all, Algorithm::kHierarchical);
  EXPECT_EQ(ring.latency, us(8.4 + 896 * 3.4 + 126 * 14));
  EXPECT_EQ(hierarchy.latency, us(8.4 + 14 * 3.4 + 126 * 14));
  // 0.8 GB x 2 x 63/64 leave each node: less than the ring's 2 x 511/512.
  EXPECT_DOUBLE_EQ(load_of(hierarchy, topology.nic(0, Direction::kIn)), 0.196875e9);
  EXPECT_LT(topology.solo_time(hierarchy), topology.solo_time(ring));
}

// 8.4 + 2 x (7 x 4 + 6 x 14) us: log2(64) steps up and down. Small messages take it.
TEST(CollectiveCost, ATreeServesSmallMessagesBetweenNodes) {
  const Topology topology(round_cluster(64));
  const Transfer tree = plan_all_reduce(topology, strided_group(0, 512), Bytes{100000});
  EXPECT_EQ(tree.algorithm, Algorithm::kTree);
  EXPECT_EQ(tree.latency, us(232.4));
}

// Each port carries 0.8 GB x (1 + 1/8) = 0.9 GB: 9 ms instead of the ring's 14.
TEST(CollectiveCost, NvlsMovesAnArrayAndAShard) {
  hardware::ClusterSpec spec = round_cluster();
  spec.collectives.nvls = true;
  const Topology topology(spec);
  const Transfer nvls = plan_all_reduce(topology, strided_group(0, 8));
  EXPECT_EQ(nvls.algorithm, Algorithm::kNvls);
  EXPECT_EQ(nvls.latency, us(25));
  EXPECT_EQ(moving(topology, nvls), us(9000));
  EXPECT_EQ(topology.plan(CollectivePattern::kAllGather, kBig, strided_group(0, 8)).algorithm,
            Algorithm::kRing);
}

TEST(CollectiveCost, ASendUsesPortsInsideANodeAndNicsBetween) {
  const Topology topology(round_cluster(2));
  const Transfer inside = topology.plan(CollectivePattern::kSendRecv, Bytes{1000000},
                                        Group{.listed = {5, 1}});
  EXPECT_EQ(inside.latency, us(11.8));
  EXPECT_EQ(moving(topology, inside), us(10));
  EXPECT_EQ(load_of(inside, topology.port(5, Direction::kOut)), 1e6);
  EXPECT_EQ(load_of(inside, topology.port(1, Direction::kIn)), 1e6);
  EXPECT_EQ(load_of(inside, topology.port(1, Direction::kOut)), 0);
  const Transfer between = topology.plan(CollectivePattern::kSendRecv, Bytes{1000000},
                                         strided_group(0, 2, 8));
  EXPECT_EQ(between.latency, us(22.4));
  EXPECT_EQ(moving(topology, between), us(100));
  EXPECT_EQ(between.channels, 2U);
}

// 16 ranks on 2 nodes: each gives 1/16 of 0.8 GB to each other one, so 7 x 50 MB over its port
// and 8 x 50 MB = 0.4 GB over its NIC.
TEST(CollectiveCost, AnAllToAllSplitsBetweenPortAndNic) {
  const Topology topology(round_cluster(2));
  const Transfer all = topology.plan(CollectivePattern::kAllToAll, kBig, strided_group(0, 16));
  EXPECT_EQ(all.algorithm, Algorithm::kDirect);
  EXPECT_DOUBLE_EQ(load_of(all, topology.port(0, Direction::kOut)), 0.35e9);
  EXPECT_DOUBLE_EQ(load_of(all, topology.nic(0, Direction::kOut)), 0.4e9);
  EXPECT_EQ(moving(topology, all), us(40000));
}

// Four nodes, two a leaf: 2 x 3/4 x 0.8 GB = 1.2 GB leave each node by one NIC of 10 GB/s, and each
// leaf by up-links of 8 GB/s.
TEST(CollectiveCost, AnOversubscribedLeafSetsTheTime) {
  hardware::ClusterSpec spec = round_cluster(4);
  spec.tree = {2, 20.0, us(1)};
  const Topology topology(spec);
  const Transfer ring = topology.plan(CollectivePattern::kAllReduce, kBig, strided_group(0, 4, 8),
                                      Algorithm::kRing);
  EXPECT_DOUBLE_EQ(load_of(ring, topology.nic(0, Direction::kOut)), 1.2e9);
  EXPECT_DOUBLE_EQ(load_of(ring, topology.leaf(0, Direction::kOut)), 1.2e9);
  EXPECT_EQ(moving(topology, ring), us(150000));
  // 6 steps between nodes, half of them between leaves: 3 x 2 us more.
  EXPECT_EQ(ring.latency, us(8.4 + 6 * 14 + 6));
}

// Two regions of one node: 0.8 GB cross a link of 1 GB/s; two steps of 10 ms.
TEST(CollectiveCost, RegionsMeetOverTheirLink) {
  hardware::ClusterSpec spec = round_cluster(2);
  spec.regions = hardware::RegionSpec{1, {1e9}, us(10000)};
  const Topology topology(spec);
  const Transfer ring = topology.plan(CollectivePattern::kAllReduce, kBig, strided_group(0, 2, 8),
                                      Algorithm::kRing);
  EXPECT_EQ(ring.latency, us(8.4 + 2 * 14 + 20000));
  EXPECT_EQ(moving(topology, ring), us(800000));
}

TEST(CollectiveCost, PairsMeetOverTheirNvlinksAndOthersOverPcie) {
  hardware::ClusterSpec spec = round_cluster();
  spec.node.kind = hardware::NodeLink::kPairs;
  spec.node.bandwidth = {20e9};
  spec.node.pair_bandwidth = {100e9};
  EXPECT_EQ(all_reduce_time(spec, strided_group(2, 2)), us(8000));   // GPUs 2 and 3
  EXPECT_EQ(all_reduce_time(spec, strided_group(1, 2)), us(40000));  // 1 and 2
}

TEST(CollectiveCost, AMeshGivesGroupsWhatTheirLinksGive) {
  hardware::ClusterSpec spec = round_cluster();
  spec.node.kind = hardware::NodeLink::kMesh;
  spec.node.group_bandwidth = {{20e9}, {20e9}, {50e9}, {50e9}, {50e9}, {50e9}, {100e9}};
  EXPECT_EQ(all_reduce_time(spec, strided_group(0, 2)), us(40000));  // 0.8 GB x 1 over 20 GB/s
  EXPECT_EQ(all_reduce_time(spec, strided_group(0, 4)), us(24000));  // 0.8 GB x 1.5 over 50 GB/s
  EXPECT_EQ(all_reduce_time(spec, strided_group(0, 8)), us(14000));
}

// 0.8 GB over the port of a switch, of a pair, or of a mesh's group of two; nothing of NCCL's.
TEST(CollectiveCost, ReadsTakeTheirLatencyAndTheirBytesOverThePort) {
  hardware::ClusterSpec spec = round_cluster();
  spec.node.pair_bandwidth = {200e9};
  spec.node.group_bandwidth = {{20e9}, {20e9}, {50e9}, {50e9}, {50e9}, {50e9}, {100e9}};
  const auto time = [&spec](hardware::NodeLink kind) {
    spec.node.kind = kind;
    const Topology topology(spec);
    return topology.solo_time(topology.plan_reads(0.8e9, strided_group(2, 2), us(6), 36));
  };
  EXPECT_EQ(time(hardware::NodeLink::kNvSwitch), us(6 + 8000));
  EXPECT_EQ(time(hardware::NodeLink::kPairs), us(6 + 4000));
  EXPECT_EQ(time(hardware::NodeLink::kMesh), us(6 + 40000));
}

// 24 channels x 8 ranks x 10 kB: below 1.92 MB the time stays, and fewer channels work.
TEST(CollectiveCost, SmallMessagesUseFewerChannels) {
  hardware::ClusterSpec spec = round_cluster();
  spec.collectives.channel_quantum = Bytes{10000};
  const Topology topology(spec);
  const auto plan = [&](std::uint64_t bytes) {
    return plan_all_reduce(topology, strided_group(0, 8), Bytes{bytes});
  };
  EXPECT_EQ(plan(800000).channels, 10U);
  EXPECT_EQ(plan(1920000).channels, 24U);
  EXPECT_EQ(plan(80000000).channels, 24U);
  EXPECT_EQ(plan(1).channels, 1U);
  EXPECT_EQ(topology.solo_time(plan(800000)), topology.solo_time(plan(1920000)));
}

// A ring of n makes 2(n-1) steps over links, and half a step more here that crosses none.
TEST(CollectiveCost, LocalCopiesCostSmallGroupsMore) {
  hardware::ClusterSpec spec = round_cluster();
  spec.collectives.local_copies = 0.5;
  EXPECT_EQ(all_reduce_time(spec, strided_group(0, 2)), us(10000));  // 0.4 GB x 2.5
  EXPECT_EQ(all_reduce_time(spec, strided_group(0, 8)), us(14500));  // 0.1 GB x 14.5
}

// LL below its limit: 6.6 + 14 x 0.6 = 15 us.
TEST(CollectiveCost, LowLatencyIsLeftAtItsLimit) {
  hardware::ClusterSpec spec = round_cluster();
  spec.collectives.bandwidth_share = {0.5, 1e-3, 1};
  spec.collectives.low_latency_below = Bytes{1000};
  const Topology topology(spec);
  const auto plan = [&](std::uint64_t bytes) {
    return plan_all_reduce(topology, strided_group(0, 8), Bytes{bytes});
  };
  EXPECT_EQ(plan(999).latency, us(15));
  EXPECT_EQ(plan(1000).latency, us(56));
}

TEST(CollectiveCost, MoreBytesNeverTakeLess) {
  for (const std::uint32_t gpus : {2U, 8U, 16U, 128U}) {
    const Topology topology(round_cluster(16));
    for (const auto kind : {CollectivePattern::kAllReduce, CollectivePattern::kAllGather,
                            CollectivePattern::kReduceScatter, CollectivePattern::kBroadcast,
                            CollectivePattern::kAllToAll}) {
      Duration last{0};
      for (std::uint64_t bytes = 16384; bytes < (1ULL << 33U); bytes = bytes * 3 / 2) {
        const Duration time =
            topology.solo_time(topology.plan(kind, Bytes{bytes}, strided_group(0, gpus)));
        EXPECT_GE(time, last) << gpus << " ranks, " << bytes << " bytes";
        last = time;
      }
    }
  }
}

TEST(CollectiveCost, GroupsAreTheSameInEveryForm) {
  const Topology topology(round_cluster(4));
  const Group nested{.first = 0, .inner = 2, .inner_stride = 1, .outer = 4, .outer_stride = 8};
  const Group listed{.listed = {24, 0, 1, 8, 9, 16, 17, 25}};
  EXPECT_EQ(nested.members(), listed.members());
  EXPECT_EQ(nested.size(), 8U);
  EXPECT_EQ(topology.solo_time(plan_all_reduce(topology, nested)),
            topology.solo_time(plan_all_reduce(topology, listed)));
}

// Collectives of kernels with a number of blocks of their own, and with other work fused into them
// (TokenWeave): closed forms, and TokenWeave's measurements on 8 H100.

/// A block moves 5 GB/s of a port's 100, and passes over 2 GB/s of local memory.
Topology blocks_topology() {
  hardware::ClusterSpec spec = round_cluster();
  spec.collectives.block_bandwidth = {5e9};
  spec.collectives.block_local_bandwidth = {2e9};
  return Topology(spec);
}

Transfer all_reduce(const Topology& topology, const CollectiveKernel& form) {
  return topology.plan(CollectivePattern::kAllReduce, kBig, strided_group(0, 8),
                       Algorithm::kAuto, form);
}

// A port carries 1.4 GB: 14 ms at its 100 GB/s; 70 ms of 4 blocks' 20; 24 blocks' 120 suffice.
TEST(CollectiveKernel, FewBlocksBoundACollective) {
  const Topology topology = blocks_topology();
  const Transfer four = all_reduce(topology, {.blocks = 4});
  EXPECT_EQ(four.channels, 4U);
  EXPECT_EQ(four.least, us(70000));
  EXPECT_EQ(all_reduce(topology, {.blocks = 24}).least, us(14000));
  EXPECT_EQ(all_reduce(topology, {.blocks = 100}).channels, 24U);  // as many as NCCL has
  EXPECT_EQ(all_reduce(topology, {}).least, us(14000));
}

// 40 MB by 4 blocks of 2 GB/s are 5 ms more; 24 blocks do both within the port's 14 ms.
TEST(CollectiveKernel, FusedWorkIsItsBlocks) {
  const Topology topology = blocks_topology();
  EXPECT_EQ(all_reduce(topology, {4, 40e6}).least, us(75000));
  EXPECT_EQ(all_reduce(topology, {24, 40e6}).least, us(14000));
  // 1.4 GB over 120 GB/s and 0.48 over 48.
  EXPECT_EQ(all_reduce(topology, {0, 480e6}).least, Duration{21'666'667});
}

struct MeasuredForm {
  std::uint64_t tokens;
  std::uint32_t blocks;
  bool fused;
  double us;
};

// microsoft/tokenweave artifact/csvs: figure_7 (plain) and figure_10 (fused), rows of 8,192 BF16 a
// token. The constants of h100-dgx are from both rows of 32,768 tokens by 2 blocks; the others
// judge. What is fused passes five times over an eighth of the array.
TEST(CollectiveKernel, IsNearWhatTokenWeaveMeasuredOnEightH100) {
  const auto spec = hardware::find_cluster_spec(
      "h100-dgx", std::string(BUBBLESIM_SOURCE_DIR) + "/configs/clusters");
  ASSERT_TRUE(spec.has_value());
  const Topology topology(*spec);
  for (const MeasuredForm& row : {MeasuredForm{32768, 2, false, 3006.2}, {32768, 2, true, 6240.8},
                                  {32768, 4, false, 1990.2}, {32768, 4, true, 3558.4},
                                  {32768, 8, false, 1959.2}, {32768, 8, true, 2184.0},
                                  {32768, 16, true, 1972.1}, {8192, 2, false, 764.3},
                                  {8192, 2, true, 1571.1}, {8192, 4, true, 913.8},
                                  {8192, 8, true, 561.7}, {2048, 2, true, 403.1},
                                  {2048, 8, false, 135.7}, {2048, 8, true, 155.4}}) {
    const double array = static_cast<double>(row.tokens) * 8192 * 2;
    const CollectiveKernel form{row.blocks, row.fused ? 5 * array / 8 : 0};
    const Transfer transfer =
        topology.plan(CollectivePattern::kAllReduce, Bytes{static_cast<std::uint64_t>(array)},
                      strided_group(0, 8), Algorithm::kNvls, form);
    const double simulated = 1e6 * to_seconds(topology.solo_time(transfer));
    EXPECT_NEAR(simulated / row.us, 1, 0.16) << row.tokens << " tokens, " << row.blocks << " blocks"
                                             << (row.fused ? ", fused: " : ": ") << simulated;
  }
}

// Flows on up-links: collisions by hash, turns by plan, and what the tail of a collective is.

using hardware::FlowPlacement;

/// Two leaves of one node, 8 NICs of 10 GB/s each and as much in up-links: 8 of 10 GB/s.
hardware::ClusterSpec two_leaves(FlowPlacement placement, std::uint64_t seed = 1) {
  hardware::ClusterSpec spec = round_cluster(2);
  spec.tree = {.nodes_per_leaf = 1, .uplinks = 8, .placement = placement, .hash_seed = seed};
  return spec;
}

Duration all_reduce(const hardware::ClusterSpec& spec, std::uint32_t ranks = 16) {
  const Topology topology(spec);
  return topology.solo_time(topology.plan(CollectivePattern::kAllReduce, kBig,
                                          strided_group(0, ranks), Algorithm::kRing));
}

/// Flows on the busiest up-link out of the first leaf.
std::uint32_t most_on_a_link(const hardware::FatTreeSpec& tree, std::uint32_t flows) {
  std::map<std::uint32_t, std::uint32_t> count;
  for (std::uint32_t nic = 0; nic < flows; ++nic) ++count[uplink_of(tree, nic, 1)];
  std::uint32_t most = 0;
  for (const auto& [link, number] : count) most = std::max(most, number);
  return most;
}

TEST(FlowPaths, PlannedFlowsTakeALinkEachAndCostNothing) {
  EXPECT_EQ(most_on_a_link(two_leaves(FlowPlacement::kPlanned).tree, 8), 1U);
  EXPECT_EQ(all_reduce(two_leaves(FlowPlacement::kPlanned)),
            all_reduce(two_leaves(FlowPlacement::kSpread)));
}

// A ring of 16 ranks moves 2 x 15/16 x 800 MB = 1.5 GB out of each node, by 8 flows of 187.5 MB. k
// of them on one up-link of 10 GB/s take k x 18.75 ms.
TEST(FlowPaths, TheBusiestUplinkIsTheTailOfAnAllReduce) {
  const Duration planned = all_reduce(two_leaves(FlowPlacement::kPlanned));
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const hardware::ClusterSpec spec = two_leaves(FlowPlacement::kHash, seed);
    std::map<std::uint32_t, std::uint32_t> out, back;
    for (std::uint32_t nic = 0; nic < 8; ++nic) {
      ++out[uplink_of(spec.tree, nic, 1)];
      ++back[uplink_of(spec.tree, 8 + nic, 0)];
    }
    std::uint32_t most = 0;
    for (const auto* counts : {&out, &back}) {
      for (const auto& [link, number] : *counts) most = std::max(most, number);
    }
    EXPECT_EQ(all_reduce(spec) - planned, Duration{18'750'000} * (most - 1)) << seed;
  }
}

// Two flows on two links meet with probability 1/2, four on four miss each other in 4!/4^4 of all
// cases.
TEST(FlowPaths, HashesCollideAsOftenAsChanceSays) {
  constexpr std::uint32_t kSeeds = 4000;
  std::uint32_t met = 0;
  std::uint32_t apart = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const FlowPlacement hash = FlowPlacement::kHash;
    met += most_on_a_link({.uplinks = 2, .placement = hash, .hash_seed = seed}, 2) == 2;
    apart += most_on_a_link({.uplinks = 4, .placement = hash, .hash_seed = seed}, 4) == 1;
  }
  EXPECT_NEAR(met / 1.0 / kSeeds, 0.5, 0.03);            // 4 standard deviations: 0.032
  EXPECT_NEAR(apart / 1.0 / kSeeds, 24.0 / 256, 0.02);   // 0.018
}

/// Of L leaves with k flows each on n up-links: the probability that no up-link has more than one.
double apart_on_all(int leaves, int flows, int links) {
  double probability = 1;
  for (int i = 0; i < flows; ++i) probability *= 1 - static_cast<double>(i) / links;
  return std::pow(probability, leaves);
}

/// The same of no more than two: j of the links have two flows, flows - 2 j have one. There are
/// flows! / 2^j ways to give the flows to them, of links^flows in all.
double pairs_at_most(int leaves, int flows, int links) {
  double ways = 0;
  for (int pairs = 0; 2 * pairs <= flows; ++pairs) {
    const int singles = flows - 2 * pairs;
    double choices = 1;  // links! / (pairs! singles! (links - pairs - singles)!)
    for (int i = 0; i < pairs + singles; ++i) choices *= links - i;
    choices /= std::tgamma(pairs + 1) * std::tgamma(singles + 1);
    ways += choices * std::tgamma(flows + 1) / std::pow(2, pairs);
  }
  return std::pow(ways / std::pow(links, flows), leaves);
}

// 64 nodes of 8 NICs on 8 leaves, 64 up-links each: of a ring's flows those of a leaf's last node
// leave it, 8 of them. By two thirds of all hashes none of a leaf's meet, but hardly by any on all
// leaves: in 7 of 8 cases the busiest up-link has two flows, so that a few hashes may well give one
// value. In one of ten it has three or more, the tail.
TEST(FlowPaths, TheTailOfARingOverManyLeavesIsWhatChanceSays) {
  constexpr int kSeeds = 400;
  hardware::ClusterSpec spec = round_cluster(64);
  spec.tree = {.nodes_per_leaf = 8, .uplinks = 64, .placement = FlowPlacement::kPlanned};
  const Duration apart = all_reduce(spec, 512);
  spec.tree.placement = FlowPlacement::kHash;
  std::map<int, int> found;  // flows on the busiest up-link
  for (int seed = 1; seed <= kSeeds; ++seed) {
    spec.tree.hash_seed = static_cast<std::uint64_t>(seed);
    const Duration time = all_reduce(spec, 512);
    // A flow is 2 x 511/512 x 100 MB over 10 GB/s.
    ++found[1 + static_cast<int>(std::lround(to_seconds(time - apart) / 19.96e-3))];
  }
  const double one = apart_on_all(8, 8, 64);
  const double two = pairs_at_most(8, 8, 64) - one;
  EXPECT_NEAR(one, 0.026, 0.001);
  EXPECT_NEAR(two, 0.875, 0.001);
  EXPECT_NEAR(found[1] / 1.0 / kSeeds, one, 0.033);  // 4 standard deviations: 0.032
  EXPECT_NEAR(found[2] / 1.0 / kSeeds, two, 0.067);  // 0.066
  EXPECT_GT(found[3], 0);
}

// Every rank of one leaf sends 8/16 of its array to the other: 8 x 400 MB over 8 flows.
TEST(FlowPaths, AnAllToAllLeavesByEveryNodesNics) {
  const Topology topology(two_leaves(FlowPlacement::kPlanned));
  const Transfer transfer =
      topology.plan(CollectivePattern::kAllToAll, kBig, strided_group(0, 16));
  double out = 0;
  for (const LinkLoad& load : transfer.loads) {
    for (std::uint32_t uplink = 0; uplink < 8; ++uplink) {
      if (load.link != topology.leaf(0, Direction::kOut, uplink)) continue;
      EXPECT_NEAR(load.bytes, 4e8, 1);
      out += load.bytes;
    }
  }
  EXPECT_NEAR(out, 3.2e9, 1);
}

TEST(FlowPaths, InsideALeafThereAreNone) {
  hardware::ClusterSpec spec = two_leaves(FlowPlacement::kHash);
  spec.tree.nodes_per_leaf = 2;
  hardware::ClusterSpec plain = spec;
  plain.tree = {.nodes_per_leaf = 2};
  EXPECT_EQ(all_reduce(spec), all_reduce(plain));
}

}  // namespace
}  // namespace bubblesim::network
