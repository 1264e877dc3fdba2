// Which links of a cluster a config's faults slow.
#include "sim/run/run_inputs.hpp"

#include <gtest/gtest.h>

namespace bubblesim::run {
namespace {

using network::Direction, network::LinkId;

/// Four nodes of two GPUs and NICs, two nodes a leaf with two up-links.
hardware::ClusterSpec two_leaves(hardware::FlowPlacement placement) {
  hardware::ClusterSpec spec;
  spec.gpus_per_node = 2;
  spec.nodes = 4;
  spec.node.bandwidth = {100e9};
  spec.nics = {2, {10e9}, Duration{}};
  spec.tree = {.nodes_per_leaf = 2, .uplinks = 2, .placement = placement};
  return spec;
}

/// Of a fault at GPU 1 in a job that sends from `from` to `to`: the links, or what is wrong.
CheckedResult<std::vector<LinkId>> slowed(LinkFault::Kind kind, hardware::ClusterSpec cluster,
                                          std::uint32_t from, std::uint32_t to) {
  const network::Topology topology(std::move(cluster));
  workload::JobProgram job;
  job.transfers = {topology.plan(network::CollectivePattern::kSendRecv, Bytes{1000},
                                 network::Group{.listed = {from, to}})};
  RunConfig config;
  config.training.slow_links = {{.kind = kind, .gpu = 1, .slowdown = 4}};
  const auto slow = slow_links(config, topology, job);
  if (!slow) return tl::unexpected<Errors>(slow.error());
  std::vector<LinkId> links;
  for (const network::SlowLink& link : *slow) links.push_back(link.link);
  return links;
}

// The flow from GPU 1 takes the second up-link, that from GPU 0 the first.
TEST(SlowLinks, ALeafIsAllOfItsUplinks) {
  const hardware::ClusterSpec cluster = two_leaves(hardware::FlowPlacement::kPlanned);
  const network::Topology topology(cluster);
  const std::vector<LinkId> all{
      topology.leaf(0, Direction::kOut, 0), topology.leaf(0, Direction::kOut, 1),
      topology.leaf(0, Direction::kIn, 0), topology.leaf(0, Direction::kIn, 1)};
  for (const std::uint32_t from : {0U, 1U}) {
    const auto links = slowed(LinkFault::Kind::kLeaf, cluster, from, 4);
    ASSERT_TRUE(links.has_value());
    EXPECT_EQ(*links, all);
  }
  EXPECT_EQ(slowed(LinkFault::Kind::kLeaf, two_leaves(hardware::FlowPlacement::kSpread), 1, 4)
                .value().size(), 2U);
  EXPECT_FALSE(slowed(LinkFault::Kind::kLeaf, cluster, 4, 6).has_value());  // of another leaf
}

TEST(SlowLinks, APortIsThatToItsPairToo) {
  hardware::ClusterSpec cluster = two_leaves(hardware::FlowPlacement::kSpread);
  cluster.gpus_per_node = 4;
  cluster.node.kind = hardware::NodeLink::kPairs;
  cluster.node.pair_bandwidth = {200e9};
  const network::Topology topology(cluster);
  const std::vector<LinkId> all{topology.port(1, Direction::kOut),
                                topology.pair_port(1, Direction::kOut),
                                topology.port(1, Direction::kIn),
                                topology.pair_port(1, Direction::kIn)};
  for (const std::uint32_t to : {0U, 2U}) {
    EXPECT_EQ(slowed(LinkFault::Kind::kPort, cluster, 1, to).value(), all);
  }
}

}  // namespace
}  // namespace bubblesim::run
