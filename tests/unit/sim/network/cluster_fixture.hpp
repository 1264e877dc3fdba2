// Clusters with round numbers, for costs that can be checked by hand. 1 GB/s is one byte a
// nanosecond.
#pragma once

#include "sim/hardware/cluster_spec.hpp"

namespace bubblesim::network {

inline constexpr Duration us(double microseconds) {
  return Duration{static_cast<std::int64_t>(microseconds * 1000)};
}

/// Nodes of 8 GPUs with 100 GB/s ports and 8 NICs of 10 GB/s; NCCL's own latencies; LL and LL128
/// switched off by a share so small that Simple is always taken.
inline hardware::ClusterSpec round_cluster(std::uint32_t nodes = 1) {
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

}  // namespace bubblesim::network
