#include "sim/network/flow_paths.hpp"

#include <algorithm>

#include "sim/base/hash.hpp"

namespace bubblesim::network {
namespace {

using hardware::FlowPlacement;

/// Members of a group that are on one node, and the node.
struct NodePart {
  std::uint32_t node;
  std::span<const std::uint32_t> members;
};

std::vector<NodePart> parts_of(const Topology& topology, const GroupLayout& place) {
  std::vector<NodePart> parts;
  for (std::size_t i = 0; i + 1 < place.node_begin.size(); ++i) {
    const std::uint32_t begin = place.node_begin[i];
    parts.push_back({topology.node_of(place.gpus[begin]),
                     {place.gpus.data() + begin, place.node_begin[i + 1] - begin}});
  }
  return parts;
}

std::vector<std::uint32_t> nics_of(const Topology& topology, const NodePart& part) {
  const hardware::ClusterSpec& spec = topology.spec();
  std::vector<std::uint32_t> nics;
  for (const std::uint32_t gpu : part.members) {
    const std::uint32_t rail = gpu % spec.gpus_per_node * spec.nics.count / spec.gpus_per_node;
    const std::uint32_t nic = part.node * spec.nics.count + rail;
    if (nics.empty() || nics.back() != nic) nics.push_back(nic);
  }
  return nics;
}

}  // namespace

std::uint32_t uplink_of(const hardware::FatTreeSpec& tree, std::uint32_t nic,
                        std::uint32_t to_leaf) {
  if (tree.placement == FlowPlacement::kPlanned) return nic % tree.uplinks;
  const std::uint64_t ends = (std::uint64_t{nic} << 32U) | to_leaf;
  const std::uint64_t salt = tree.hash_seed * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::uint32_t>(splitmix64(splitmix64(ends) + salt) % tree.uplinks);
}

void FlowLoads::add(std::span<const std::uint32_t> nics, std::uint32_t to_node, double bytes) {
  const hardware::ClusterSpec& spec = topology_.spec();
  const std::uint32_t to_leaf = to_node / spec.tree.nodes_per_leaf;
  for (const std::uint32_t nic : nics) {
    const std::uint32_t from_node = nic / spec.nics.count;
    if (from_node / spec.tree.nodes_per_leaf == to_leaf) continue;
    const std::uint32_t uplink = uplink_of(spec.tree, nic, to_leaf);
    const double share = bytes / static_cast<double>(nics.size());
    bytes_[topology_.leaf(from_node, Direction::kOut, uplink).value] += share;
    bytes_[topology_.leaf(to_node, Direction::kIn, uplink).value] += share;
  }
}

void FlowLoads::append_to(std::vector<LinkLoad>& loads) const {
  for (const auto& [link, bytes] : bytes_) {
    if (bytes > 0) loads.push_back({LinkId{link}, bytes});
  }
}

// A ring visits nodes in order and comes back to the first. In an all-to-all every node sends to
// every other what its members have for those.
void add_flows(const Topology& topology, CollectivePattern kind, double bytes,
               const GroupLayout& place, double crossing, std::vector<LinkLoad>& loads) {
  FlowLoads flows(topology);
  const std::vector<NodePart> parts = parts_of(topology, place);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::vector<std::uint32_t> nics = nics_of(topology, parts[i]);
    if (kind != CollectivePattern::kAllToAll) {
      flows.add(nics, parts[(i + 1) % parts.size()].node, crossing);
      continue;
    }
    for (std::size_t j = 0; j < parts.size(); ++j) {
      const double pairs = static_cast<double>(parts[i].members.size() * parts[j].members.size());
      if (j != i) flows.add(nics, parts[j].node, bytes / place.ranks() * pairs);
    }
  }
  flows.append_to(loads);
}

}  // namespace bubblesim::network
