#include "sim/synth/folded_transfer.hpp"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <vector>

namespace bubblesim::synth {
namespace {

using network::Group;
using network::Topology;
using network::Transfer;

Group shifted(Group group, std::uint32_t offset) {
  group.first += offset;
  for (std::uint32_t& rank : group.listed) rank += offset;
  return group;
}

// Places on nodes, and on leaves and regions where there are several, repeat after so many GPUs; on
// up-links of their own they need not.
std::uint32_t period(const hardware::ClusterSpec& cluster) {
  if (cluster.tree.placement != hardware::FlowPlacement::kSpread) return cluster.gpus();
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

double largest(const Transfer& transfer) {
  double bytes = 0;
  for (const network::LinkLoad& load : transfer.loads) bytes = std::max(bytes, load.bytes);
  return bytes;
}

// Each of transfers that run at once gets what all of them load its links with.
void share_links(const Topology& topology, std::vector<Transfer>& transfers) {
  std::vector<double> bytes(topology.links().size());
  for (const Transfer& transfer : transfers) {
    for (const network::LinkLoad& load : transfer.loads) bytes[load.link.index()] += load.bytes;
  }
  for (Transfer& transfer : transfers) {
    if (transfer.loads.empty()) continue;
    const double alone = largest(transfer);
    for (network::LinkLoad& load : transfer.loads) load.bytes = bytes[load.link.index()];
    transfer.shares = largest(transfer) / alone;
  }
}

}  // namespace

FoldedTransfer folded_transfer(const Topology& topology, network::CollectivePattern kind,
                               Bytes bytes, const Communicator& communicator,
                               const network::CollectiveKernel& form) {
  std::vector<Transfer> transfers;
  for (const Group& twin : twins_of(communicator, topology.spec())) {
    transfers.push_back(topology.plan(kind, bytes, twin, network::Algorithm::kAuto, form));
  }
  const auto time = [&](const Transfer& transfer) { return topology.solo_time(transfer); };
  const auto [fastest, slowest] = std::ranges::minmax(transfers | std::views::transform(time));
  if (transfers.size() > 1) share_links(topology, transfers);
  return {*std::ranges::max_element(transfers, {}, time),
          fastest == slowest ? Twins::kAlike : Twins::kApart};
}

}  // namespace bubblesim::synth
