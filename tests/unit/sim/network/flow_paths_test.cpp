// Flows on up-links: collisions by hash, turns by plan, and what the tail of a collective is.
#include "sim/network/flow_paths.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/unit/sim/network/cluster_fixture.hpp"

namespace bubblesim::network {
namespace {

using hardware::FlowPlacement;

/// Two leaves of one node, 8 NICs of 10 GB/s each and as much in up-links: 8 of 10 GB/s.
hardware::ClusterSpec two_leaves(FlowPlacement placement, std::uint64_t seed = 1) {
  hardware::ClusterSpec spec = round_cluster(2);
  spec.tree = {.nodes_per_leaf = 1, .uplinks = 8, .placement = placement, .hash_seed = seed};
  return spec;
}

Duration all_reduce(const hardware::ClusterSpec& spec, Bytes bytes = Bytes{800'000'000},
                    std::uint32_t ranks = 16) {
  const Topology topology(spec);
  return topology.solo_time(topology.plan(CollectivePattern::kAllReduce, bytes,
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
  const Duration apart = all_reduce(spec, Bytes{800'000'000}, 512);
  spec.tree.placement = FlowPlacement::kHash;
  std::map<int, int> found;  // flows on the busiest up-link
  for (int seed = 1; seed <= kSeeds; ++seed) {
    spec.tree.hash_seed = static_cast<std::uint64_t>(seed);
    const Duration time = all_reduce(spec, Bytes{800'000'000}, 512);
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
      topology.plan(CollectivePattern::kAllToAll, Bytes{800'000'000}, strided_group(0, 16));
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
