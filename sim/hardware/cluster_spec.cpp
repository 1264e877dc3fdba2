#include "sim/hardware/cluster_spec.hpp"

#include <chrono>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/input_file.hpp"
#include "sim/hardware/constant_reader.hpp"

namespace bubblesim::hardware {

ClusterSpec with_nodes(ClusterSpec spec, std::uint32_t nodes) {
  BUBBLESIM_CHECK(nodes >= 1, "a cluster has at least one node");
  spec.nodes = nodes;
  return spec;
}

CheckedResult<ClusterSpec> read_cluster_spec(const std::string& path) {
  return read_whole_file(path, read_cluster);
}

CheckedResult<std::vector<ClusterFile>> read_cluster_folder(const std::string& folder) {
  return read_data_folder(folder, "cluster",
                          [](const std::string& path) -> CheckedResult<ClusterFile> {
                            BUBBLESIM_ASSIGN_OR_RETURN(ClusterSpec spec, read_cluster_spec(path));
                            return ClusterFile{data_file_id(path), path, std::move(spec)};
                          });
}

CheckedResult<ClusterSpec> find_cluster_spec(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path, find_data_file(name, folder, "cluster"));
  return read_cluster_spec(path);
}

namespace {

using std::string_view;

constexpr Range<BytesPerSecond> kRate{BytesPerSecond{1}, BytesPerSecond{1e15}};
constexpr Range<Duration> kLatency{Duration{0}, std::chrono::seconds(10)};
constexpr Range<double> kShare{0.001, 1.0};

constexpr std::array kNodeLinks{Choice<NodeLink>{"nvswitch", NodeLink::kNvSwitch},
                                Choice<NodeLink>{"mesh", NodeLink::kMesh},
                                Choice<NodeLink>{"pairs", NodeLink::kPairs},
                                Choice<NodeLink>{"pcie", NodeLink::kPcie}};

constexpr std::array kPlacements{Choice<FlowPlacement>{"spread", FlowPlacement::kSpread},
                                 Choice<FlowPlacement>{"hash", FlowPlacement::kHash},
                                 Choice<FlowPlacement>{"planned", FlowPlacement::kPlanned}};

BytesPerSecond rate(ObjectReader& parent, string_view key) {
  return constant(parent, key).rate("value", kRate);
}

Duration latency(ObjectReader& parent, string_view key) {
  return constant(parent, key).duration("value", kLatency);
}

std::string name(ObjectReader& parent, string_view key) {
  ObjectReader reader = constant(parent, key);
  std::string text = reader.text("value");
  if (reader.present() && text.empty()) reader.fault("value", "found no text; expected a name");
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
  ObjectReader reader = constant(parent, key);
  return per_protocol(reader, reader.durations("value", kLatency));
}

PerProtocol<double> shares(ObjectReader& parent, string_view key) {
  ObjectReader reader = constant(parent, key);
  check_unit(reader, "share");
  return per_protocol(reader, reader.numbers("value", kShare));
}

// Bare numbers, so in one unit: GB/s.
std::vector<BytesPerSecond> group_rates(ObjectReader& parent, std::uint32_t gpus) {
  ObjectReader reader = constant(parent, "group_bandwidth");
  check_unit(reader, "GB/s");
  std::vector<BytesPerSecond> out;
  for (const double value : reader.numbers("value", {0.001, 1e6})) out.push_back({value * 1e9});
  if (reader.present() && out.size() + 1 != gpus) {
    reader.fault("value", "found " + std::to_string(out.size()) + " rates; expected " +
                          std::to_string(gpus - 1) + ", for groups of 2 to " +
                          std::to_string(gpus) + " GPUs");
  }
  return out;
}

NodeFabricSpec read_node(ObjectReader& root, std::uint32_t gpus) {
  ObjectReader reader = root.child("node");
  NodeFabricSpec out;
  out.kind = constant(reader, "kind").choice("value", kNodeLinks);
  out.bandwidth = rate(reader, "bandwidth");
  if (out.kind == NodeLink::kPairs) out.pair_bandwidth = rate(reader, "pair_bandwidth");
  if (out.kind == NodeLink::kMesh) out.group_bandwidth = group_rates(reader, gpus);
  return out;
}

NicSpec read_nics(ObjectReader& root, const ClusterSpec& spec) {
  ObjectReader reader = root.child("nics", Presence::kOptional);
  if (!reader.present()) {
    if (spec.nodes > 1) root.fault("nics", "missing; a cluster of several nodes has NICs");
    return {};
  }
  return {count(reader, "count", "NICs"), rate(reader, "bandwidth"), latency(reader, "latency")};
}

// A switch has as many ports up as down at most: an up-link for each NIC below it.
void check_uplinks(ObjectReader& reader, const FatTreeSpec& tree, std::uint32_t nics) {
  const std::uint64_t ports = std::uint64_t{tree.nodes_per_leaf} * nics;
  if (nics == 0 || tree.uplinks <= ports) return;
  reader.fault("uplinks", "found " + std::to_string(tree.uplinks) + "; expected at most " +
                              std::to_string(ports) + ", the NICs below a leaf");
}

FatTreeSpec read_tree(ObjectReader& root, std::uint32_t nics) {
  ObjectReader reader = root.child("fat_tree", Presence::kOptional);
  if (!reader.present()) return {.nodes_per_leaf = kMaxCount};
  FatTreeSpec out{count(reader, "nodes_per_leaf", "nodes"),
                  number(reader, "oversubscription", "ratio", {1.0, 1000.0}),
                  latency(reader, "hop_latency")};
  if (!reader.has("uplinks")) return out;
  out.uplinks = count(reader, "uplinks", "links");
  check_uplinks(reader, out, nics);
  out.placement = constant(reader, "placement").choice("value", kPlacements);
  if (out.placement == FlowPlacement::kHash) {
    out.hash_seed = count(reader, "hash_seed", "seed");
  }
  return out;
}

std::optional<RegionSpec> read_regions(ObjectReader& root) {
  ObjectReader reader = root.child("regions", Presence::kOptional);
  if (!reader.present()) return std::nullopt;
  return RegionSpec{count(reader, "nodes_per_region", "nodes"), rate(reader, "bandwidth"),
                    latency(reader, "latency")};
}

CollectiveSpec read_collectives(ObjectReader& root) {
  ObjectReader reader = root.child("collectives");
  CollectiveSpec out;
  out.ring_base = latencies(reader, "ring_base");
  out.tree_base = latencies(reader, "tree_base");
  out.ring_hop = latencies(reader, "ring_hop");
  out.tree_hop = latencies(reader, "tree_hop");
  out.ring_net_hop = latencies(reader, "ring_net_hop");
  out.tree_net_hop = latencies(reader, "tree_net_hop");
  out.bandwidth_share = shares(reader, "bandwidth_share");
  out.low_latency_below = constant(reader, "low_latency_below").bytes("value");
  out.channel_quantum =
      constant(reader, "channel_quantum").bytes("value", {Bytes{0}, Bytes{1 << 30}});
  out.local_copies = number(reader, "local_copies", "steps", {0.0, 10.0});
  out.ring_net_factor = number(reader, "ring_net_factor", "ratio", {1.0, 10.0});
  out.tree_share = number(reader, "tree_share", "share", kShare);
  ObjectReader nvls = reader.child("nvls", Presence::kOptional);
  out.nvls = nvls.present();
  if (out.nvls) {
    out.nvls_hop = latency(nvls, "hop");
    out.nvls_net_hop = latency(nvls, "net_hop");
    out.nvls_share = number(nvls, "share", "share", kShare);
  }
  out.p2p_base = latency(reader, "p2p_base");
  out.node_channels = count(reader, "node_channels", "blocks");
  out.net_channels = count(reader, "net_channels", "blocks");
  out.p2p_channels = count(reader, "p2p_channels", "blocks");
  if (reader.has("block_bandwidth")) {
    out.block_bandwidth = rate(reader, "block_bandwidth");
    out.block_local_bandwidth = rate(reader, "block_local_bandwidth");
  }
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
  spec.tree = read_tree(root, spec.nics.count);
  spec.regions = read_regions(root);
  spec.collectives = read_collectives(root);
  root.finish();
  return spec;
}

}  // namespace bubblesim::hardware
