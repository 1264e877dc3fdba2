#include "sim/synth/folded_transfer.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/network/collective_cost.hpp"

namespace bubblesim::synth {
namespace {

using network::Group;
using network::Topology;
using network::Transfer;

Group shifted(Group group, std::uint32_t by) {
  group.first += by;
  for (std::uint32_t& rank : group.listed) rank += by;
  return group;
}

// Places on nodes, and on leaves and regions where there are several, repeat after so many GPUs.
std::uint32_t period(const hardware::ClusterSpec& cluster) {
  std::uint32_t nodes = 1;
  if (cluster.nodes > cluster.tree.nodes_per_leaf) nodes = cluster.tree.nodes_per_leaf;
  if (cluster.regions) nodes = std::lcm(nodes, cluster.regions->nodes_per_region);
  return nodes * cluster.gpus_per_node;
}

// Those that are distinct in their places, and as many again: the last one of a period may share a
// node with the first one of the next.
std::vector<Group> twins_of(const Communicator& communicator,
                            const hardware::ClusterSpec& cluster) {
  const auto few = [&](const Shifts& shifts) {
    const std::uint32_t apart = std::gcd(shifts.stride, period(cluster));
    return std::min(shifts.count, 2 * period(cluster) / std::max(apart, 1U));
  };
  const auto& [outer, inner] = communicator.twins;
  std::vector<Group> twins;
  for (std::uint32_t i = 0; i < few(outer); ++i) {
    for (std::uint32_t j = 0; j < few(inner); ++j) {
      twins.push_back(shifted(communicator.group, i * outer.stride + j * inner.stride));
    }
  }
  return twins;
}

bool lie_alike(const Topology& topology, const std::vector<Group>& groups) {
  const network::Footprint first = network::footprint(topology, groups.front());
  return std::ranges::all_of(groups, [&](const Group& group) {
    const network::Footprint other = network::footprint(topology, group);
    return other.node_begin == first.node_begin && other.leaves == first.leaves &&
           other.regions == first.regions;
  });
}

// The slowest of transfers that run at once, with what all of them load its links with.
Transfer slowest(const Topology& topology, std::vector<Transfer> transfers) {
  std::map<network::LinkId, double> bytes;
  for (const Transfer& transfer : transfers) {
    for (const network::LinkLoad& load : transfer.loads) bytes[load.link] += load.bytes;
  }
  for (Transfer& transfer : transfers) {
    for (network::LinkLoad& load : transfer.loads) load.bytes = bytes[load.link];
  }
  return *std::ranges::max_element(transfers, {}, [&](const Transfer& transfer) {
    return topology.solo_time(transfer);
  });
}

}  // namespace

FoldedTransfer folded_transfer(const Topology& topology, network::CollectiveKind kind, Bytes bytes,
                               const Communicator& communicator,
                               const network::KernelForm& form) {
  const auto plan = [&](const Group& group) {
    return topology.plan(kind, bytes, group, network::Algorithm::kAuto, form);
  };
  const std::vector<Group> twins = twins_of(communicator, topology.spec());
  if (lie_alike(topology, twins)) return {plan(communicator.group), Twins::kAlike};
  std::vector<Transfer> transfers;
  for (Group twin : twins) {
    twin.siblings = 1;
    transfers.push_back(plan(twin));
  }
  return {slowest(topology, std::move(transfers)), Twins::kApart};
}

}  // namespace bubblesim::synth
