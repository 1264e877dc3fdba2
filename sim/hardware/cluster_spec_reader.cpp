#include "sim/hardware/cluster_spec_reader.hpp"

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "sim/hardware/constant_reader.hpp"

namespace bubblesim::hardware {
namespace {

using std::string_view;

constexpr Range<BytesPerSecond> kRate{BytesPerSecond{1}, BytesPerSecond{1e15}};
constexpr Range<Duration> kLatency{Duration{0}, std::chrono::seconds(10)};
constexpr Range<double> kShare{0.001, 1.0};

constexpr std::array kNodeLinks{Choice<NodeLink>{"nvswitch", NodeLink::kNvSwitch},
                                Choice<NodeLink>{"mesh", NodeLink::kMesh},
                                Choice<NodeLink>{"pairs", NodeLink::kPairs},
                                Choice<NodeLink>{"pcie", NodeLink::kPcie}};

BytesPerSecond rate(ObjectReader& parent, string_view key) {
  return constant(parent, key).rate("value", kRate);
}

Duration latency(ObjectReader& parent, string_view key) {
  return constant(parent, key).duration("value", kLatency);
}

std::string name(ObjectReader& parent, string_view key) {
  ObjectReader it = constant(parent, key);
  std::string text = it.text("value");
  if (it.present() && text.empty()) it.fault("value", "found no text; expected a name");
  return text;
}

template <class T>
PerProtocol<T> per_protocol(ObjectReader& constant, const std::vector<T>& values) {
  PerProtocol<T> out{};
  if (values.size() == kProtocols) {
    std::copy(values.begin(), values.end(), out.begin());
  } else if (constant.present()) {
    constant.fault("value", "found " + std::to_string(values.size()) +
                                " values; expected 3, for LL, LL128 and Simple");
  }
  return out;
}

PerProtocol<Duration> latencies(ObjectReader& parent, string_view key) {
  ObjectReader it = constant(parent, key);
  return per_protocol(it, it.durations("value", kLatency));
}

PerProtocol<double> shares(ObjectReader& parent, string_view key) {
  ObjectReader it = constant(parent, key);
  check_unit(it, "share");
  return per_protocol(it, it.numbers("value", kShare));
}

// Bare numbers, so in one unit: GB/s.
std::vector<BytesPerSecond> group_rates(ObjectReader& parent, std::uint32_t gpus) {
  ObjectReader it = constant(parent, "group_bandwidth");
  check_unit(it, "GB/s");
  std::vector<BytesPerSecond> out;
  for (const double value : it.numbers("value", {0.001, 1e6})) out.push_back({value * 1e9});
  if (it.present() && out.size() + 1 != gpus) {
    it.fault("value", "found " + std::to_string(out.size()) + " rates; expected " +
                          std::to_string(gpus - 1) + ", for groups of 2 to " +
                          std::to_string(gpus) + " GPUs");
  }
  return out;
}

NodeFabricSpec read_node(ObjectReader& root, std::uint32_t gpus) {
  ObjectReader it = root.child("node");
  NodeFabricSpec out;
  out.kind = constant(it, "kind").choice("value", kNodeLinks);
  out.bandwidth = rate(it, "bandwidth");
  if (out.kind == NodeLink::kPairs) out.pair_bandwidth = rate(it, "pair_bandwidth");
  if (out.kind == NodeLink::kMesh) out.group_bandwidth = group_rates(it, gpus);
  return out;
}

NicSpec read_nics(ObjectReader& root, const ClusterSpec& spec) {
  ObjectReader it = root.child("nics", Presence::kOptional);
  if (!it.present()) {
    if (spec.nodes > 1) root.fault("nics", "missing; a cluster of several nodes has NICs");
    return {};
  }
  return {count(it, "count", "NICs"), rate(it, "bandwidth"), latency(it, "latency")};
}

FatTreeSpec read_tree(ObjectReader& root) {
  ObjectReader it = root.child("fat_tree", Presence::kOptional);
  if (!it.present()) return {.nodes_per_leaf = kMaxCount};
  return {count(it, "nodes_per_leaf", "nodes"),
          number(it, "oversubscription", "ratio", {1.0, 1000.0}), latency(it, "hop_latency")};
}

std::optional<RegionSpec> read_regions(ObjectReader& root) {
  ObjectReader it = root.child("regions", Presence::kOptional);
  if (!it.present()) return std::nullopt;
  return RegionSpec{count(it, "nodes_per_region", "nodes"), rate(it, "bandwidth"),
                    latency(it, "latency")};
}

CollectiveSpec read_collectives(ObjectReader& root) {
  ObjectReader it = root.child("collectives");
  CollectiveSpec out;
  out.ring_base = latencies(it, "ring_base");
  out.tree_base = latencies(it, "tree_base");
  out.ring_hop = latencies(it, "ring_hop");
  out.tree_hop = latencies(it, "tree_hop");
  out.ring_net_hop = latencies(it, "ring_net_hop");
  out.tree_net_hop = latencies(it, "tree_net_hop");
  out.bandwidth_share = shares(it, "bandwidth_share");
  out.low_latency_below = constant(it, "low_latency_below").bytes("value");
  out.channel_quantum = constant(it, "channel_quantum").bytes("value", {Bytes{0}, Bytes{1 << 30}});
  out.local_copies = number(it, "local_copies", "steps", {0.0, 10.0});
  out.ring_net_factor = number(it, "ring_net_factor", "ratio", {1.0, 10.0});
  out.tree_share = number(it, "tree_share", "share", kShare);
  ObjectReader nvls = it.child("nvls", Presence::kOptional);
  out.nvls = nvls.present();
  if (out.nvls) {
    out.nvls_hop = latency(nvls, "hop");
    out.nvls_net_hop = latency(nvls, "net_hop");
    out.nvls_share = number(nvls, "share", "share", kShare);
  }
  out.p2p_base = latency(it, "p2p_base");
  out.node_channels = count(it, "node_channels", "blocks");
  out.net_channels = count(it, "net_channels", "blocks");
  out.p2p_channels = count(it, "p2p_channels", "blocks");
  return out;
}

}  // namespace

ClusterSpec read_cluster(ObjectReader& root) {
  ClusterSpec spec;
  spec.name = name(root, "name");
  spec.device = name(root, "device");
  spec.gpus_per_node = count(root, "gpus_per_node", "GPUs");
  spec.nodes = count(root, "nodes", "nodes");
  spec.node = read_node(root, spec.gpus_per_node);
  spec.nics = read_nics(root, spec);
  spec.tree = read_tree(root);
  spec.regions = read_regions(root);
  spec.collectives = read_collectives(root);
  root.finish();
  return spec;
}

}  // namespace bubblesim::hardware
