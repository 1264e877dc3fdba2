#include "sim/network/topology.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/divide.hpp"

namespace bubblesim::network {
namespace {

LinkId directed(std::uint32_t first, std::uint32_t index, Direction direction) {
  return LinkId{first + 2 * index + static_cast<std::uint32_t>(direction)};
}

}  // namespace

Duration solo_time(const Transfer& transfer, const LinkTable& links) {
  double seconds = 0;
  for (const LinkLoad& load : transfer.loads) {
    seconds = std::max(seconds, load.bytes / links[load.link.index()].value);
  }
  // A thousandth of a nanosecond is rounding of the division, not time (as in fabric.cpp).
  const Duration moving{static_cast<std::int64_t>(std::ceil(seconds * 1e9 - 1e-3))};
  return transfer.latency + std::max(transfer.least, moving);
}

double bus_factor(CollectivePattern kind, std::uint32_t ranks) {
  const double n = ranks;
  switch (kind) {
    case CollectivePattern::kAllReduce:
      return 2 * (n - 1) / n;
    case CollectivePattern::kAllGather:
    case CollectivePattern::kReduceScatter:
    case CollectivePattern::kAllToAll:
      return (n - 1) / n;
    case CollectivePattern::kBroadcast:
    case CollectivePattern::kSendRecv:
      return 1;
  }
  return 1;
}

Topology::Topology(hardware::ClusterSpec spec) : spec_(std::move(spec)) {
  BUBBLESIM_CHECK(spec_.nodes == 1 || spec_.nics.count > 0, "several nodes need NICs");
  const auto add = [this](std::uint32_t count, BytesPerSecond capacity) {
    const auto first = static_cast<std::uint32_t>(links_.size());
    links_.insert(links_.end(), std::size_t{2} * count, capacity);
    return first;
  };
  const std::uint32_t leaves = divide_up(spec_.nodes, spec_.tree.nodes_per_leaf);
  const double leaf_rate = spec_.nics.bandwidth.value * spec_.nics.count *
                           std::min(spec_.tree.nodes_per_leaf, spec_.nodes) /
                           spec_.tree.oversubscription;
  add(spec_.gpus(), spec_.node.bandwidth);
  first_pair_ = add(spec_.node.kind == hardware::NodeLink::kPairs ? spec_.gpus() : 0,
                    spec_.node.pair_bandwidth);
  first_nic_ = add(spec_.nodes * spec_.nics.count, spec_.nics.bandwidth);
  first_leaf_ = add(leaves > 1 ? leaves * uplinks() : 0, {leaf_rate / uplinks()});
  if (spec_.regions) {
    first_region_ = add(divide_up(spec_.nodes, spec_.regions->nodes_per_region),
                        spec_.regions->bandwidth);
  }
}

LinkId Topology::port(std::uint32_t gpu, Direction direction) const {
  return directed(0, gpu, direction);
}

LinkId Topology::pair_port(std::uint32_t gpu, Direction direction) const {
  return directed(first_pair_, gpu, direction);
}

LinkId Topology::nic(std::uint32_t gpu, Direction direction) const {
  const std::uint32_t local = gpu % spec_.gpus_per_node;
  const std::uint32_t rail = local * spec_.nics.count / spec_.gpus_per_node;
  return directed(first_nic_, node_of(gpu) * spec_.nics.count + rail, direction);
}

LinkId Topology::leaf(std::uint32_t node, Direction direction, std::uint32_t uplink) const {
  const std::uint32_t leaf = node / spec_.tree.nodes_per_leaf;
  return directed(first_leaf_, leaf * uplinks() + uplink, direction);
}

std::uint32_t Topology::uplinks() const {
  return spec_.tree.placement == hardware::FlowPlacement::kSpread ? 1 : spec_.tree.uplinks;
}

LinkId Topology::region(std::uint32_t node, Direction direction) const {
  return directed(first_region_, node / spec_.regions->nodes_per_region, direction);
}

}  // namespace bubblesim::network
