// The cost of collectives, in the form of NCCL's own tuning model: a latency (a base and the hops
// of the ring's or tree's steps) and the bytes over the links' bandwidth, for each protocol; the
// fastest counts. Differences, each with its reason:
//
//  * Bytes are loads on links, not a time, so that collectives which run together can share them.
//    Transfer::least has costs outside of links: a protocol's share of a link; a ring's copies that
//    cross no link (in an all-reduce a rank passes on 2(n-1) pieces and copies the last one out of
//    its buffer), which is why small groups reach less bandwidth; and the least time of a channel,
//    which is why time stays flat below channels x ranks x quantum bytes (NCCL uses fewer channels
//    then: threadThreshold in getAlgoInfo).
//  * LL is left for Simple or LL128 at a fixed size (CollectiveSpec::low_latency_below).
//  * NVLS: a rank's port carries its array to the switch and the result back, and a 1/n shard of
//    both: bytes x (1 + 1/n) each way.
//  * A collective over nodes moves through NVLink and NICs at once; the slower one sets the time.
//
// Source of form and step counts: NCCL 2.2x src/graph/tuning.cc, nccl-tests doc/PERFORMANCE.md.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/network/topology.hpp"

namespace bubblesim::network {

/// The nanoseconds of a span as a double, for costs that are rounded only as a sum.
[[nodiscard]] constexpr double ns_of(Duration span) { return static_cast<double>(to_ns(span)); }

/// The GPUs and nodes of a group's members.
struct GroupLayout {
  std::vector<std::uint32_t> gpus;        ///< ascending
  std::vector<std::uint32_t> node_begin;  ///< into gpus: the first of each node; then the end
  std::uint32_t leaves = 1;
  std::uint32_t regions = 1;

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(gpus.size()); }
  [[nodiscard]] std::uint32_t nodes() const {
    return static_cast<std::uint32_t>(node_begin.size()) - 1;
  }
};

[[nodiscard]] GroupLayout layout_of(const Topology& topology, const Group& group);

/// Steps on an algorithm's critical path.
struct Steps {
  double inside = 0;  ///< between GPUs of a node
  double between_nodes = 0;  ///< between nodes, including those below
  double leaves = 0;  ///< between leaf switches
  double regions = 0; ///< between regions
};

/// Bytes that a GPU sends, over all of an algorithm's steps: inside its node, and out of the node
/// (all of the node's members together).
struct Volume {
  double port = 0;
  double node = 0;
};

[[nodiscard]] Volume volume_of(CollectivePattern kind, Algorithm algorithm, double bytes,
                               std::uint32_t ranks, std::uint32_t members, std::uint32_t nodes);

/// Whether the members are the two GPUs of an NVLink pair.
[[nodiscard]] bool one_pair(const hardware::ClusterSpec& spec,
                            std::span<const std::uint32_t> members);

/// Adds `bytes` each way on the port of each member of a node.
void add_port_loads(const Topology& topology, double bytes, std::span<const std::uint32_t> members,
                    std::vector<LinkLoad>& loads);

/// Adds the load on each member's port, each NIC, leaf and region.
void add_loads(const Topology& topology, CollectivePattern kind, Algorithm algorithm, double bytes,
               const GroupLayout& place, std::vector<LinkLoad>& loads);

/// Adds the loads of a send, whose two sides differ.
void add_send(const Topology& topology, double bytes, std::uint32_t from, std::uint32_t to,
              const GroupLayout& place, std::vector<LinkLoad>& loads);

[[nodiscard]] Steps steps_of(CollectivePattern kind, Algorithm algorithm, const GroupLayout& place);

// Flows between leaf switches, each on one up-link: their collisions, and the cost of these.
//
// A flow is the traffic of one NIC to another leaf during a collective. If paths are chosen by hash
// (ECMP), two flows may take the same up-link, and the collective waits for the busiest; if they
// are planned, they take up-links round robin. A flow takes the same spine up and down, and the
// same in every collective, since connections of a job last as long as the job.

/// The up-link of a flow from this NIC (of the whole cluster) to this leaf. Precondition: flows are
/// not spread.
[[nodiscard]] std::uint32_t uplink_of(const hardware::FatTreeSpec& tree, std::uint32_t nic,
                                      std::uint32_t to_leaf);

/// Loads of up-links, each link once, in the order of links.
class FlowLoads {
 public:
  explicit FlowLoads(const Topology& topology) : topology_(topology) {}

  /// Adds `bytes` from each of these NICs to the leaf of a node. Nothing within a leaf.
  void add(std::span<const std::uint32_t> nics, std::uint32_t to_node, double bytes);
  void append_to(std::vector<LinkLoad>& loads) const;

 private:
  const Topology& topology_;
  std::map<std::uint32_t, double> bytes_;  ///< by link
};

/// Adds the load of a collective's ring, tree or direct exchange on its leaves' up-links, flow by
/// flow. `crossing`: bytes that leave a node, except of an all-to-all.
void add_flows(const Topology& topology, CollectivePattern kind, double bytes,
               const GroupLayout& place, double crossing, std::vector<LinkLoad>& loads);

}  // namespace bubblesim::network
