// Flows between leaf switches, each on one up-link: what collides, and what that costs.
//
// A flow is what one NIC sends to another leaf during a collective. If paths are chosen by hash
// (ECMP), two flows may take the same up-link, and the collective waits for the busiest; planned,
// they take them in turn. A flow takes the same spine up and down, and the same in every
// collective: connections of a job live as long as it does.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/network/collective_cost.hpp"

namespace bubblesim::network {

/// The up-link of a flow from this NIC (of the whole cluster) to this leaf. Precondition: flows are
/// not spread.
[[nodiscard]] std::uint32_t uplink_of(const hardware::FatTreeSpec& tree, std::uint32_t nic,
                                      std::uint32_t to_leaf);

/// Loads of up-links, each link once, in the order of links.
class FlowLoads {
 public:
  explicit FlowLoads(const Topology& topology) : topology_(topology) {}

  /// `bytes` from these NICs, the same from each, to the leaf of a node. Nothing within a leaf.
  void add(std::span<const std::uint32_t> nics, std::uint32_t to_node, double bytes);
  void append_to(std::vector<LinkLoad>& loads) const;

 private:
  const Topology& topology_;
  std::map<std::uint32_t, double> bytes_;  ///< by link
};

/// What a collective's ring, tree or direct exchange loads its leaves' up-links with, flow by flow.
/// `crossing`: bytes that leave a node, but for an all-to-all.
void add_flows(const Topology& topology, CollectivePattern kind, double bytes,
               const GroupLayout& place, double crossing, std::vector<LinkLoad>& loads);

}  // namespace bubblesim::network
