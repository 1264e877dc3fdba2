#include "sim/network/collective_cost.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::network {
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

double log2_of(std::uint32_t count) { return count > 1 ? std::log2(count) : 0.0; }

Duration from_ns(double ns) { return Duration{std::llround(ns)}; }

double ns_of(Duration span) { return static_cast<double>(to_ns(span)); }

bool reduces_or_gathers(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter;
}

// Members of every node, if all have as many; else 0.
std::uint32_t even_members(const Footprint& place) {
  const std::uint32_t each = place.ranks() / place.nodes();
  for (std::size_t i = 0; i + 1 < place.node_begin.size(); ++i) {
    if (place.node_begin[i + 1] - place.node_begin[i] != each) return 0;
  }
  return each;
}

/// Loads of one node's members and of what lies above it.
class NodeLoads {
 public:
  NodeLoads(const Topology& topology, const Footprint& place, std::vector<LinkLoad>& loads)
      : topology_(topology), place_(place), loads_(loads) {}

  void port(std::uint32_t gpu, double bytes, bool in_pair) {
    if (bytes <= 0) return;
    for (const Direction direction : {Direction::kOut, Direction::kIn}) {
      loads_.push_back({in_pair ? topology_.pair_port(gpu, direction)
                                : topology_.port(gpu, direction), bytes});
    }
  }

  // `bytes` of the group leave the node, and as many enter it, spread over its members' NICs.
  void nics(std::span<const std::uint32_t> members, double bytes) {
    if (bytes <= 0) return;
    const auto own = distinct_nics(members);
    const double each = bytes / static_cast<double>(own.size()) * sharing(members, own.size());
    for (const std::uint32_t gpu : own) {
      loads_.push_back({topology_.nic(gpu, Direction::kOut), each});
      loads_.push_back({topology_.nic(gpu, Direction::kIn), each});
    }
  }

 private:
  // One GPU a NIC.
  std::vector<std::uint32_t> distinct_nics(std::span<const std::uint32_t> gpus) const {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t gpu : gpus) {
      if (out.empty() || topology_.nic(out.back(), Direction::kOut) !=
                             topology_.nic(gpu, Direction::kOut)) {
        out.push_back(gpu);
      }
    }
    return out;
  }

  // How many groups, siblings included, share each of the group's NICs. Siblings fill the aligned
  // block of the node's GPUs that has room for them all.
  double sharing(std::span<const std::uint32_t> members, std::size_t own_nics) const {
    if (place_.siblings == 1) return 1.0;
    const std::uint32_t per_node = topology_.spec().gpus_per_node;
    const auto wanted = static_cast<std::uint32_t>(members.size()) * place_.siblings;
    const std::uint32_t block = std::min(wanted, per_node);
    const std::uint32_t local = members.front() % per_node / block * block;
    const std::uint32_t begin = topology_.node_of(members.front()) * per_node + local;
    std::vector<std::uint32_t> gpus;
    for (std::uint32_t i = 0; i < block && local + i < per_node; ++i) gpus.push_back(begin + i);
    const auto all_nics = std::max(distinct_nics(gpus).size(), own_nics);
    return static_cast<double>(place_.siblings) * static_cast<double>(own_nics) /
           static_cast<double>(all_nics);
  }

  const Topology& topology_;
  const Footprint& place_;
  std::vector<LinkLoad>& loads_;
};

bool one_pair(const ClusterSpec& spec, std::span<const std::uint32_t> members) {
  return spec.node.kind == NodeLink::kPairs && members.size() == 2 &&
         members[0] / 2 == members[1] / 2;
}

// What a GPU sends, over all of an algorithm's steps, inside its node and (all of the node's
// members together) out of it.
struct Volume {
  double port = 0;
  double node = 0;
};

Volume volume_of(CollectiveKind kind, Algorithm algorithm, double bytes, std::uint32_t ranks,
                 std::uint32_t members, std::uint32_t nodes) {
  const double n = ranks;
  const double m = members;
  const double many = nodes;
  const bool spans = nodes > 1;
  const double ring = bus_factor(kind, ranks) * bytes;
  const double passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
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

// Leaves or regions: `index_of` maps a node to its own; `link` gives its links.
template <class IndexOf, class LinkOf>
void add_domains(const Topology& topology, CollectiveKind kind, double bytes,
                 const Footprint& place, double crossing, IndexOf index_of, LinkOf link,
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
    const double out = kind == CollectiveKind::kAllToAll ? bytes / n * (n - m) * m : crossing;
    loads.push_back({link(node, Direction::kOut), out * place.siblings});
    loads.push_back({link(node, Direction::kIn), out * place.siblings});
  }
}

void add_send(const Topology& topology, double bytes, std::uint32_t from, std::uint32_t to,
              const Footprint& place, std::vector<LinkLoad>& loads) {
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
  // Siblings send from the node's other GPUs: each NIC carries those that it serves.
  const double total = bytes * place.siblings;
  const double per_nic =
      std::max(bytes, total / std::min<double>(spec.nics.count, place.siblings));
  loads.push_back({topology.nic(from, Direction::kOut), per_nic});
  loads.push_back({topology.nic(to, Direction::kIn), per_nic});
  if (place.leaves > 1) {
    loads.push_back({topology.leaf(a, Direction::kOut), total});
    loads.push_back({topology.leaf(b, Direction::kIn), total});
  }
  if (place.regions > 1) {
    loads.push_back({topology.region(a, Direction::kOut), total});
    loads.push_back({topology.region(b, Direction::kIn), total});
  }
}

}  // namespace

Footprint footprint(const Topology& topology, const Group& group) {
  Footprint out;
  out.gpus = group.members();
  out.siblings = group.siblings;
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

void add_loads(const Topology& topology, CollectiveKind kind, Algorithm algorithm, double bytes,
               const Footprint& place, std::vector<LinkLoad>& loads) {
  NodeLoads node_loads(topology, place, loads);
  double crossing = 0;
  for (std::size_t i = 0; i + 1 < place.node_begin.size(); ++i) {
    const std::span<const std::uint32_t> members(place.gpus.data() + place.node_begin[i],
                                                 place.node_begin[i + 1] - place.node_begin[i]);
    const Volume volume =
        volume_of(kind, algorithm, bytes, place.ranks(),
                  static_cast<std::uint32_t>(members.size()), place.nodes());
    const bool pair = one_pair(topology.spec(), members);
    for (const std::uint32_t gpu : members) node_loads.port(gpu, volume.port, pair);
    node_loads.nics(members, volume.node);
    crossing = std::max(crossing, volume.node);
  }
  const ClusterSpec& spec = topology.spec();
  if (place.leaves > 1) {
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

Steps steps_of(CollectiveKind kind, Algorithm algorithm, const Footprint& place) {
  const double n = place.ranks();
  const double nodes = place.nodes();
  const double passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
  Steps out;
  switch (algorithm) {
    case Algorithm::kTree:
      out.inside = passes * (n / nodes - 1);
      out.between = passes * log2_of(place.nodes());
      out.leaves = passes * log2_of(place.leaves);
      out.regions = passes * log2_of(place.regions);
      return out;
    case Algorithm::kNvls:
      out.inside = 1;
      out.between = passes * log2_of(place.nodes());
      out.leaves = passes * log2_of(place.leaves);
      out.regions = passes * log2_of(place.regions);
      return out;
    case Algorithm::kDirect:
      (nodes > 1 ? out.between : out.inside) = 1;
      out.leaves = place.leaves > 1 ? 1 : 0;
      out.regions = place.regions > 1 ? 1 : 0;
      return out;
    case Algorithm::kHierarchical:
      out.between = passes * (nodes - 1);
      out.inside = passes * (n / nodes - 1);
      break;
    case Algorithm::kAuto:
    case Algorithm::kRing:
      out.between = passes * (nodes - 1);
      out.inside = passes * (n - 1) - out.between;
      break;
  }
  // A ring that visits nodes in order crosses each boundary once a turn.
  if (place.leaves > 1) out.leaves = out.between * place.leaves / nodes;
  if (place.regions > 1) out.regions = out.between * place.regions / nodes;
  return out;
}

namespace {

/// One collective while its cheapest form is sought.
class Planner {
 public:
  Planner(const Topology& topology, CollectiveKind kind, Bytes bytes, const Group& group)
      : topology_(topology), spec_(topology.spec()), costs_(spec_.collectives), kind_(kind),
        bytes_(static_cast<double>(bytes.value)), place_(footprint(topology, group)),
        each_(even_members(place_)) {
    if (kind == CollectiveKind::kSendRecv) {
      BUBBLESIM_CHECK(place_.ranks() == 2, "a send has a sender and a receiver");
      from_ = group.listed.empty() ? place_.gpus[0] : group.listed[0];
      to_ = group.listed.empty() ? place_.gpus[1] : group.listed[1];
    }
  }

  Transfer best(Algorithm wanted) const {
    if (place_.ranks() <= 1 || bytes_ <= 0) return {};
    if (wanted != Algorithm::kAuto && allows(wanted)) return best_protocol(wanted);
    std::optional<Transfer> out;
    for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvls,
                                      Algorithm::kHierarchical, Algorithm::kDirect}) {
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

 private:
  bool direct() const {
    return kind_ == CollectiveKind::kSendRecv || kind_ == CollectiveKind::kAllToAll;
  }

  bool allows(Algorithm algorithm) const {
    switch (algorithm) {
      case Algorithm::kRing:
        return !direct();
      case Algorithm::kTree:
        return kind_ == CollectiveKind::kAllReduce;
      case Algorithm::kNvls:
        return kind_ == CollectiveKind::kAllReduce && costs_.nvls && each_ >= kNvlsRanks;
      case Algorithm::kHierarchical:
        return reduces_or_gathers(kind_) && place_.nodes() > 1 && each_ > 1;
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
    if (kind_ == CollectiveKind::kSendRecv) {
      add_send(topology_, bytes_, from_, to_, place_, loads);
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
    double between = ns_of(tree ? costs_.tree_net_hop[p] : costs_.ring_net_hop[p]);
    if (algorithm == Algorithm::kNvls) {
      base = 0;
      inside = ns_of(costs_.nvls_hop);
      between = ns_of(costs_.nvls_net_hop);
    }
    if (algorithm == Algorithm::kDirect && protocol == Protocol::kSimple) {
      base = ns_of(costs_.p2p_base);
    }
    // NCCL adds the NIC's latency once, and twice for Simple, which signals apart from the data.
    between += ns_of(spec_.nics.latency) * (protocol == Protocol::kSimple ? 2 : 1);
    double sum = base + steps.inside * inside + steps.between * between +
                 steps.leaves * 2 * ns_of(spec_.tree.hop_latency);
    const bool ring = algorithm == Algorithm::kRing || algorithm == Algorithm::kHierarchical;
    if (ring && protocol == Protocol::kSimple && place_.nodes() > 1) sum *= costs_.ring_net_factor;
    if (spec_.regions) sum += steps.regions * ns_of(spec_.regions->latency);
    return from_ns(sum);
  }

  // What a GPU of the group sends and receives inside its node.
  double node_rate() const {
    const hardware::NodeFabricSpec& node = spec_.node;
    const std::uint32_t members = each_ > 0 ? each_ : place_.ranks() / place_.nodes();
    if (node.kind == NodeLink::kMesh && members >= 2) {
      return node.group_bandwidth[members - 2].value;
    }
    if (one_pair(spec_, place_.gpus)) return node.pair_bandwidth.value;
    return node.bandwidth.value;
  }

  std::uint32_t channel_limit(Algorithm algorithm) const {
    if (algorithm == Algorithm::kDirect) return costs_.p2p_channels;
    return place_.nodes() > 1 ? costs_.net_channels : costs_.node_channels;
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

  Duration least_of(Algorithm algorithm, Protocol protocol, double links) const {
    const bool one_node = place_.nodes() == 1;
    double seconds = links;
    if (algorithm == Algorithm::kRing && (one_node || each_ > 1)) {
      const double ranks = place_.ranks();
      const double filled = quantum(protocol) * channel_limit(algorithm);
      const double bytes = one_node ? std::max(bytes_, filled) : bytes_;
      const double steps = bus_factor(kind_, place_.ranks()) * ranks + costs_.local_copies;
      seconds = std::max(seconds, bytes / ranks * steps / node_rate());
    } else if (one_node || each_ > 1) {
      const Volume volume = volume_of(kind_, algorithm, bytes_, place_.ranks(),
                                      std::max(each_, 1U), place_.nodes());
      const double port = kind_ == CollectiveKind::kSendRecv ? bytes_ : volume.port;
      if (one_node || !direct()) seconds = std::max(seconds, port / node_rate());
    }
    double share = 1;
    if (algorithm == Algorithm::kTree) share = costs_.tree_share;
    if (algorithm == Algorithm::kNvls) share = costs_.nvls_share;
    share *= costs_.bandwidth_share[static_cast<std::size_t>(protocol)];
    return from_ns(seconds / share * 1e9);
  }

  const Topology& topology_;
  const ClusterSpec& spec_;
  const CollectiveSpec& costs_;
  CollectiveKind kind_;
  double bytes_;
  Footprint place_;
  std::uint32_t each_;
  std::uint32_t from_ = 0;
  std::uint32_t to_ = 0;
};

}  // namespace

Transfer Topology::plan(CollectiveKind kind, Bytes bytes, const Group& group,
                        Algorithm algorithm) const {
  return Planner(*this, kind, bytes, group).best(algorithm);
}

}  // namespace bubblesim::network
