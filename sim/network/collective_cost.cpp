#include "sim/network/collective_cost.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/hash.hpp"

namespace bubblesim::network {
namespace {

using hardware::ClusterSpec;
using hardware::FlowPlacement;
using hardware::NodeLink;

double log2_of(std::uint32_t count) { return count > 1 ? std::log2(count) : 0.0; }

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

/// The NICs of the node's members, each once.
std::vector<std::uint32_t> nics_of(const Topology& topology, const NodePart& part) {
  std::vector<std::uint32_t> nics;
  for (const std::uint32_t gpu : part.members) {
    const std::uint32_t nic = topology.nic_of(gpu);
    if (nics.empty() || nics.back() != nic) nics.push_back(nic);
  }
  return nics;
}

// `bytes` of the group leave the node, and as many enter it, spread over its members' NICs.
void add_nic_loads(const Topology& topology, const NodePart& part, double bytes,
                   std::vector<LinkLoad>& loads) {
  if (bytes <= 0) return;
  const std::vector<std::uint32_t> nics = nics_of(topology, part);
  const double share = bytes / static_cast<double>(nics.size());
  for (const std::uint32_t nic : nics) {
    loads.push_back({topology.nic_link(nic, Direction::kOut), share});
    loads.push_back({topology.nic_link(nic, Direction::kIn), share});
  }
}

// Leaves or regions: `index_of` maps a node to its own; `link` gives its links.
template <class IndexOf, class LinkOf>
void add_domains(const Topology& topology, CollectivePattern kind, double bytes,
                 const GroupLayout& place, double crossing, IndexOf index_of, LinkOf link,
                 std::vector<LinkLoad>& loads) {
  const std::size_t nodes = place.node_begin.size() - 1;
  for (std::size_t i = 0; i < nodes;) {
    const std::uint32_t node = topology.node_of(place.gpus[place.node_begin[i]]);
    const std::uint32_t begin = place.node_begin[i];
    while (i < nodes &&
           index_of(topology.node_of(place.gpus[place.node_begin[i]])) == index_of(node)) {
      ++i;
    }
    const double n = place.ranks();
    const double m = place.node_begin[i] - begin;
    const double out = kind == CollectivePattern::kAllToAll ? bytes / n * (n - m) * m : crossing;
    loads.push_back({link(node, Direction::kOut), out});
    loads.push_back({link(node, Direction::kIn), out});
  }
}

}  // namespace

bool one_pair(const ClusterSpec& spec, std::span<const std::uint32_t> members) {
  return spec.node.kind == NodeLink::kPairs && members.size() == 2 &&
         members[0] / 2 == members[1] / 2;
}

Volume volume_of(CollectivePattern kind, Algorithm algorithm, double bytes, std::uint32_t ranks,
                 std::uint32_t members, std::uint32_t nodes) {
  const double n = ranks;
  const double m = members;
  const double many = nodes;
  const bool spans = nodes > 1;
  const double ring = bus_factor(kind, ranks) * bytes;
  const double passes = kind == CollectivePattern::kAllReduce ? 2 : 1;
  switch (algorithm) {
    case Algorithm::kTree:
      return {2 * bytes * (spans ? (m - 1) / m : 1), spans ? 2 * bytes : 0};
    case Algorithm::kNvls:
      return {bytes * (1 + 1 / m), spans ? 2 * bytes : 0};
    case Algorithm::kHierarchical:
      return {passes * bytes * (m - 1) / m, passes * bytes * (many - 1) / many};
    case Algorithm::kDirect:
      return {bytes / n * (m - 1), bytes / n * (n - m) * m};
    case Algorithm::kAuto:
    case Algorithm::kRing:
      break;
  }
  return {ring * (spans ? (m - 1) / m : 1), spans ? ring : 0};
}

GroupLayout layout_of(const Topology& topology, const Group& group) {
  GroupLayout out;
  out.gpus = group.members();
  BUBBLESIM_CHECK(!out.gpus.empty() && out.gpus.back() < topology.spec().gpus(),
                  "a group's members lie on the cluster");
  BUBBLESIM_CHECK(std::adjacent_find(out.gpus.begin(), out.gpus.end()) == out.gpus.end(),
                  "a group's members are distinct");
  const ClusterSpec& spec = topology.spec();
  std::uint32_t leaf = 0;
  std::uint32_t region = 0;
  for (std::uint32_t i = 0; i < out.gpus.size(); ++i) {
    const std::uint32_t node = topology.node_of(out.gpus[i]);
    if (i > 0 && node == topology.node_of(out.gpus[i - 1])) continue;
    const std::uint32_t own_leaf = node / spec.tree.nodes_per_leaf;
    const std::uint32_t own_region = spec.regions ? node / spec.regions->nodes_per_region : 0;
    if (i > 0 && own_leaf != leaf) ++out.leaves;
    if (i > 0 && own_region != region) ++out.regions;
    leaf = own_leaf;
    region = own_region;
    out.node_begin.push_back(i);
  }
  out.node_begin.push_back(out.ranks());
  return out;
}

void add_send(const Topology& topology, double bytes, std::uint32_t from, std::uint32_t to,
              const GroupLayout& place, std::vector<LinkLoad>& loads) {
  const ClusterSpec& spec = topology.spec();
  const std::uint32_t a = topology.node_of(from);
  const std::uint32_t b = topology.node_of(to);
  if (a == b) {
    const bool pair = spec.node.kind == NodeLink::kPairs && from / 2 == to / 2;
    loads.push_back({pair ? topology.pair_port(from, Direction::kOut)
                          : topology.port(from, Direction::kOut), bytes});
    loads.push_back({pair ? topology.pair_port(to, Direction::kIn)
                          : topology.port(to, Direction::kIn), bytes});
    return;
  }
  loads.push_back({topology.nic(from, Direction::kOut), bytes});
  loads.push_back({topology.nic(to, Direction::kIn), bytes});
  if (place.leaves > 1 && spec.tree.placement != FlowPlacement::kSpread) {
    FlowLoads flows(topology);
    const std::uint32_t nic = topology.nic_of(from);
    flows.add(std::span(&nic, 1), b, bytes);
    flows.append_to(loads);
  } else if (place.leaves > 1) {
    loads.push_back({topology.leaf(a, Direction::kOut), bytes});
    loads.push_back({topology.leaf(b, Direction::kIn), bytes});
  }
  if (place.regions > 1) {
    loads.push_back({topology.region(a, Direction::kOut), bytes});
    loads.push_back({topology.region(b, Direction::kIn), bytes});
  }
}

void add_port_loads(const Topology& topology, double bytes, std::span<const std::uint32_t> members,
                    std::vector<LinkLoad>& loads) {
  if (bytes <= 0) return;
  const bool pair = one_pair(topology.spec(), members);
  for (const std::uint32_t gpu : members) {
    for (const Direction direction : {Direction::kOut, Direction::kIn}) {
      loads.push_back({pair ? topology.pair_port(gpu, direction) : topology.port(gpu, direction),
                       bytes});
    }
  }
}

void add_loads(const Topology& topology, CollectivePattern kind, Algorithm algorithm, double bytes,
               const GroupLayout& place, std::vector<LinkLoad>& loads) {
  double crossing = 0;
  for (const NodePart& part : parts_of(topology, place)) {
    const Volume volume =
        volume_of(kind, algorithm, bytes, place.ranks(),
                  static_cast<std::uint32_t>(part.members.size()), place.nodes());
    add_port_loads(topology, volume.port, part.members, loads);
    add_nic_loads(topology, part, volume.node, loads);
    crossing = std::max(crossing, volume.node);
  }
  const ClusterSpec& spec = topology.spec();
  if (place.leaves > 1 && spec.tree.placement != FlowPlacement::kSpread) {
    add_flows(topology, kind, bytes, place, crossing, loads);
  } else if (place.leaves > 1) {
    add_domains(
        topology, kind, bytes, place, crossing,
        [&](std::uint32_t node) { return node / spec.tree.nodes_per_leaf; },
        [&](std::uint32_t node, Direction to) { return topology.leaf(node, to); }, loads);
  }
  if (place.regions > 1) {
    add_domains(
        topology, kind, bytes, place, crossing,
        [&](std::uint32_t node) { return node / spec.regions->nodes_per_region; },
        [&](std::uint32_t node, Direction to) { return topology.region(node, to); }, loads);
  }
}

Steps steps_of(CollectivePattern kind, Algorithm algorithm, const GroupLayout& place) {
  const double n = place.ranks();
  const double nodes = place.nodes();
  const double passes = kind == CollectivePattern::kAllReduce ? 2 : 1;
  Steps out;
  switch (algorithm) {
    case Algorithm::kTree:
    case Algorithm::kNvls:
      out.inside = algorithm == Algorithm::kTree ? passes * (n / nodes - 1) : 1;
      out.between_nodes = passes * log2_of(place.nodes());
      out.leaves = passes * log2_of(place.leaves);
      out.regions = passes * log2_of(place.regions);
      return out;
    case Algorithm::kDirect:
      (nodes > 1 ? out.between_nodes : out.inside) = 1;
      out.leaves = place.leaves > 1 ? 1 : 0;
      out.regions = place.regions > 1 ? 1 : 0;
      return out;
    case Algorithm::kHierarchical:
      out.between_nodes = passes * (nodes - 1);
      out.inside = passes * (n / nodes - 1);
      break;
    case Algorithm::kAuto:
    case Algorithm::kRing:
      out.between_nodes = passes * (nodes - 1);
      out.inside = passes * (n - 1) - out.between_nodes;
      break;
  }
  // A ring that visits nodes in order crosses each boundary once a turn.
  if (place.leaves > 1) out.leaves = out.between_nodes * place.leaves / nodes;
  if (place.regions > 1) out.regions = out.between_nodes * place.regions / nodes;
  return out;
}

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
