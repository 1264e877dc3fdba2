#include "sim/network/topology.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/divide.hpp"
#include "sim/network/collective_cost.hpp"

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

std::uint32_t Topology::nic_of(std::uint32_t gpu) const {
  const std::uint32_t local = gpu % spec_.gpus_per_node;
  return node_of(gpu) * spec_.nics.count + local * spec_.nics.count / spec_.gpus_per_node;
}

LinkId Topology::nic_link(std::uint32_t nic, Direction direction) const {
  return directed(first_nic_, nic, direction);
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

std::uint32_t Group::size() const {
  return listed.empty() ? inner * outer : static_cast<std::uint32_t>(listed.size());
}

std::vector<std::uint32_t> Group::members() const {
  std::vector<std::uint32_t> out = listed;
  if (out.empty()) {
    out.reserve(size());
    for (std::uint32_t i = 0; i < outer; ++i) {
      for (std::uint32_t j = 0; j < inner; ++j) {
        out.push_back(first + i * outer_stride + j * inner_stride);
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Group strided_group(std::uint32_t first, std::uint32_t count, std::uint32_t stride) {
  return {.first = first, .inner = count, .inner_stride = stride};
}

namespace {

using hardware::ClusterSpec;
using hardware::CollectiveSpec;
using hardware::NodeLink;
using hardware::Protocol;

// NCCL sends by LL below this (NCCL_P2P_LL_THRESHOLD's default, src/enqueue.cc).
constexpr double kP2pLowLatencyBelow = 16384;
// LL's channels are worth opening for an eighth of the bytes (NCCL_LL_THREAD_THRESHOLD 8 against
// NCCL_SIMPLE_THREAD_THRESHOLD 64, src/include/comm.h).
constexpr double kLlQuantumShare = 1.0 / 8;
// NVLS takes the place of rings from this many ranks of a node on.
constexpr std::uint32_t kNvlsRanks = 3;

Duration from_ns(double ns) { return Duration{std::llround(ns)}; }

bool reduces_or_gathers(CollectivePattern kind) {
  return kind == CollectivePattern::kAllReduce || kind == CollectivePattern::kAllGather ||
         kind == CollectivePattern::kReduceScatter;
}

// Members of every node, if all have as many; else 0.
std::uint32_t even_members(const GroupLayout& place) {
  const std::uint32_t node_ranks = place.ranks() / place.nodes();
  for (std::size_t i = 0; i + 1 < place.node_begin.size(); ++i) {
    if (place.node_begin[i + 1] - place.node_begin[i] != node_ranks) return 0;
  }
  return node_ranks;
}

/// One collective while its cheapest form is sought.
class Planner {
 public:
  Planner(const Topology& topology, CollectivePattern kind, Bytes bytes, const Group& group,
          const CollectiveKernel& form)
      : topology_(topology), spec_(topology.spec()), costs_(spec_.collectives), kind_(kind),
        bytes_(static_cast<double>(bytes.value)), form_(form), place_(layout_of(topology, group)),
        node_members_(even_members(place_)) {
    if (kind == CollectivePattern::kSendRecv) {
      BUBBLESIM_CHECK(place_.ranks() == 2, "a send has a sender and a receiver");
      sender_ = group.listed.empty() ? place_.gpus[0] : group.listed[0];
      receiver_ = group.listed.empty() ? place_.gpus[1] : group.listed[1];
    }
  }

  Transfer best(Algorithm wanted) const {
    if (place_.ranks() <= 1 || bytes_ <= 0) return {};
    if (wanted != Algorithm::kAuto && allows(wanted)) return best_protocol(wanted);
    std::optional<Transfer> out;
    // Hierarchical only when asked for: NCCL's own choice (getAlgoInfo) knows rings, trees and
    // NVLS; frameworks build hierarchies out of several collectives.
    for (const Algorithm algorithm :
         {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvls, Algorithm::kDirect}) {
      if (!allows(algorithm)) continue;
      // Inside a node a tree is a chain with as many hops as the ring, and tables measured there
      // (vTrain, A100) show the ring's steps.
      if (algorithm == Algorithm::kTree && place_.nodes() == 1) continue;
      Transfer other = best_protocol(algorithm);
      if (!out || topology_.solo_time(other) < topology_.solo_time(*out)) out = std::move(other);
    }
    BUBBLESIM_CHECK(out.has_value(), "every collective has an algorithm");
    return *std::move(out);
  }

  // As many bytes are read of a GPU as it reads.
  Transfer reads(double port_bytes, Duration latency, std::uint32_t blocks) const {
    Transfer out;
    out.latency = latency;
    out.least = from_ns(port_bytes / node_rate() * 1e9);
    add_port_loads(topology_, port_bytes, place_.gpus, out.loads);
    out.channels = blocks;
    return out;
  }

 private:
  bool direct() const {
    return kind_ == CollectivePattern::kSendRecv || kind_ == CollectivePattern::kAllToAll;
  }

  bool allows(Algorithm algorithm) const {
    switch (algorithm) {
      case Algorithm::kRing:
        return !direct();
      case Algorithm::kTree:
        return kind_ == CollectivePattern::kAllReduce;
      case Algorithm::kNvls:
        return kind_ == CollectivePattern::kAllReduce && costs_.nvls && node_members_ >= kNvlsRanks;
      case Algorithm::kHierarchical:
        return reduces_or_gathers(kind_) && place_.nodes() > 1 && node_members_ > 1;
      case Algorithm::kDirect:
        return direct();
      case Algorithm::kAuto:
        return false;
    }
    return false;
  }

  bool allows(Algorithm algorithm, Protocol protocol) const {
    if (algorithm == Algorithm::kNvls) return protocol == Protocol::kSimple;
    if (algorithm == Algorithm::kDirect) {
      return protocol == (bytes_ < kP2pLowLatencyBelow ? Protocol::kLl : Protocol::kSimple);
    }
    const auto limit = static_cast<double>(costs_.low_latency_below.value);
    return protocol != Protocol::kLl || bytes_ < limit;
  }

  Transfer best_protocol(Algorithm algorithm) const {
    std::vector<LinkLoad> loads;
    if (kind_ == CollectivePattern::kSendRecv) {
      add_send(topology_, bytes_, sender_, receiver_, place_, loads);
    } else {
      add_loads(topology_, kind_, algorithm, bytes_, place_, loads);
    }
    double links = 0;
    for (const LinkLoad& load : loads) {
      links = std::max(links, load.bytes / topology_.links()[load.link.index()].value);
    }
    Transfer out;
    Duration shortest = Duration::max();
    for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
      if (!allows(algorithm, protocol)) continue;
      const Duration latency = latency_of(algorithm, protocol);
      const Duration least = least_of(algorithm, protocol, links);
      if (latency + least >= shortest) continue;
      shortest = latency + least;
      out.latency = latency;
      out.least = least;
      out.protocol = protocol;
    }
    out.algorithm = algorithm;
    out.channels = channels_of(algorithm, out.protocol);
    out.loads = std::move(loads);
    return out;
  }

  Duration latency_of(Algorithm algorithm, Protocol protocol) const {
    const auto p = static_cast<std::size_t>(protocol);
    const Steps steps = steps_of(kind_, algorithm, place_);
    const bool tree = algorithm == Algorithm::kTree;
    double base = ns_of(tree ? costs_.tree_base[p] : costs_.ring_base[p]);
    double inside = ns_of(tree ? costs_.tree_hop[p] : costs_.ring_hop[p]);
    double net_hop = ns_of(tree ? costs_.tree_net_hop[p] : costs_.ring_net_hop[p]);
    if (algorithm == Algorithm::kNvls) {
      base = 0;
      inside = ns_of(costs_.nvls_hop);
      net_hop = ns_of(costs_.nvls_net_hop);
    }
    if (algorithm == Algorithm::kDirect && protocol == Protocol::kSimple) {
      base = ns_of(costs_.p2p_base);
    }
    // NCCL adds the NIC's latency once, and twice for Simple, which signals apart from the data.
    net_hop += ns_of(spec_.nics.latency) * (protocol == Protocol::kSimple ? 2 : 1);
    double sum = base + steps.inside * inside + steps.between_nodes * net_hop +
                 steps.leaves * 2 * ns_of(spec_.tree.hop_latency);
    const bool ring = algorithm == Algorithm::kRing || algorithm == Algorithm::kHierarchical;
    if (ring && protocol == Protocol::kSimple && place_.nodes() > 1) sum *= costs_.ring_net_factor;
    if (spec_.regions) sum += steps.regions * ns_of(spec_.regions->latency);
    return from_ns(sum);
  }

  // What a GPU of the group sends and receives inside its node.
  double node_rate() const {
    const hardware::NodeFabricSpec& node = spec_.node;
    const std::uint32_t members =
        node_members_ > 0 ? node_members_ : place_.ranks() / place_.nodes();
    if (node.kind == NodeLink::kMesh && members >= 2) {
      return node.group_bandwidth[members - 2].value;
    }
    if (one_pair(spec_, place_.gpus)) return node.pair_bandwidth.value;
    return node.bandwidth.value;
  }

  std::uint32_t channel_limit(Algorithm algorithm) const {
    std::uint32_t limit = place_.nodes() > 1 ? costs_.net_channels : costs_.node_channels;
    if (algorithm == Algorithm::kDirect) limit = costs_.p2p_channels;
    return form_.blocks > 0 ? std::min(limit, form_.blocks) : limit;
  }

  double quantum(Protocol protocol) const {
    const double quantum = static_cast<double>(costs_.channel_quantum.value) * place_.ranks();
    return protocol == Protocol::kLl ? quantum * kLlQuantumShare : quantum;
  }

  std::uint32_t channels_of(Algorithm algorithm, Protocol protocol) const {
    const std::uint32_t limit = channel_limit(algorithm);
    if (algorithm == Algorithm::kDirect || quantum(protocol) <= 0) return limit;
    const double worth = std::floor(bytes_ / quantum(protocol));
    return static_cast<std::uint32_t>(std::clamp(worth, 1.0, static_cast<double>(limit)));
  }

  // What the blocks of a kernel of another form take: they move their parts of what the port
  // carries, and pass over their parts of what is fused, one after the other.
  double seconds_of_blocks(Algorithm algorithm, Protocol protocol) const {
    if (form_ == CollectiveKernel{}) return 0;
    const Volume volume = volume_of(kind_, algorithm, bytes_, place_.ranks(),
                                    std::max(node_members_, 1U), place_.nodes());
    const double channels = channels_of(algorithm, protocol);
    return (volume.port / costs_.block_bandwidth.value +
            form_.local_bytes / costs_.block_local_bandwidth.value) / channels;
  }

  Duration least_of(Algorithm algorithm, Protocol protocol, double links) const {
    const bool one_node = place_.nodes() == 1;
    double seconds = links;
    if (algorithm == Algorithm::kRing && (one_node || node_members_ > 1)) {
      const double ranks = place_.ranks();
      const double filled = quantum(protocol) * channel_limit(algorithm);
      const double bytes = one_node ? std::max(bytes_, filled) : bytes_;
      const double steps = bus_factor(kind_, place_.ranks()) * ranks + costs_.local_copies;
      seconds = std::max(seconds, bytes / ranks * steps / node_rate());
    } else if (one_node || node_members_ > 1) {
      const Volume volume = volume_of(kind_, algorithm, bytes_, place_.ranks(),
                                      std::max(node_members_, 1U), place_.nodes());
      const double port = kind_ == CollectivePattern::kSendRecv ? bytes_ : volume.port;
      if (one_node || !direct()) seconds = std::max(seconds, port / node_rate());
    }
    double share = 1;
    if (algorithm == Algorithm::kTree) share = costs_.tree_share;
    if (algorithm == Algorithm::kNvls) share = costs_.nvls_share;
    share *= costs_.bandwidth_share[static_cast<std::size_t>(protocol)];
    return from_ns(std::max(seconds / share, seconds_of_blocks(algorithm, protocol)) * 1e9);
  }

  const Topology& topology_;
  const ClusterSpec& spec_;
  const CollectiveSpec& costs_;
  CollectivePattern kind_;
  double bytes_;
  CollectiveKernel form_;
  GroupLayout place_;
  std::uint32_t node_members_;
  std::uint32_t sender_ = 0;
  std::uint32_t receiver_ = 0;
};

}  // namespace

Transfer Topology::plan(CollectivePattern kind, Bytes bytes, const Group& group,
                        Algorithm algorithm, const CollectiveKernel& form) const {
  return Planner(*this, kind, bytes, group, form).best(algorithm);
}

Transfer Topology::plan_reads(double port_bytes, const Group& group, Duration latency,
                              std::uint32_t blocks) const {
  return Planner(*this, CollectivePattern::kAllReduce, {}, group, {})
      .reads(port_bytes, latency, blocks);
}

}  // namespace bubblesim::network
