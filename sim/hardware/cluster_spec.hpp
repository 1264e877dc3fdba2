// A cluster's constants, immutable, read from configs/clusters/*.json. Every constant's unit and
// source stand in the cluster file; configs/clusters/README.md explains each key. All rates are of
// one direction: links are full duplex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::hardware {

/// How the GPUs of a node reach each other.
enum class NodeLink : std::uint8_t {
  kNvSwitch,  ///< every GPU has one port into a switch
  kMesh,      ///< NVLinks between GPUs; bandwidth depends on the group's size
  kPairs,     ///< GPUs 2i and 2i+1 share NVLinks; others meet over PCIe
  kPcie,      ///< one PCIe port a GPU
};

struct NodeFabricSpec {
  NodeLink kind = NodeLink::kNvSwitch;
  BytesPerSecond bandwidth;       ///< of a GPU's port, achieved by collectives
  BytesPerSecond pair_bandwidth;  ///< kPairs: between the two GPUs of a pair
  std::vector<BytesPerSecond> group_bandwidth;  ///< kMesh: of a GPU in a group of 2, 3, ...
};

/// GPU i of a node uses NIC i * count / gpus_per_node.
struct NicSpec {
  std::uint32_t count = 0;   ///< a node; 0: the cluster is one node
  BytesPerSecond bandwidth;  ///< of one NIC, achieved by transfers
  Duration latency{};        ///< added to each hop between nodes
};

/// How a flow from a NIC to another leaf chooses its up-link.
enum class FlowPlacement : std::uint8_t {
  kSpread,   ///< split over all: multipath transport
  kHash,     ///< one, by a hash of its endpoints (ECMP): flows may collide
  kPlanned,  ///< round robin, as a planner of all flows does (C4P, arXiv 2406.04594)
};

/// Leaf switches with up-links to spines.
struct FatTreeSpec {
  std::uint32_t nodes_per_leaf = 1;
  double oversubscription = 1.0;  ///< NIC bandwidth of a leaf's nodes / bandwidth of its up-links
  Duration hop_latency{};         ///< leaf to spine, or spine to leaf
  std::uint32_t uplinks = 1;      ///< of a leaf, one to each spine; they share its bandwidth evenly
  FlowPlacement placement = FlowPlacement::kSpread;
  std::uint64_t hash_seed = 1;    ///< kHash
};

/// Consecutive nodes form a region; regions are joined by wide-area links.
struct RegionSpec {
  std::uint32_t nodes_per_region = 1;
  BytesPerSecond bandwidth;  ///< of a region's link, out or in
  Duration latency{};        ///< one way, between two regions
};

/// NCCL's protocols, in the order of its own tables.
enum class Protocol : std::uint8_t { kLl, kLl128, kSimple };
inline constexpr std::size_t kProtocols = 3;
template <class T>
using PerProtocol = std::array<T, kProtocols>;

/// Constants of the collectives' cost (the formula is in sim/network/collective_cost.hpp).
struct CollectiveSpec {
  PerProtocol<Duration> ring_base{};
  PerProtocol<Duration> tree_base{};
  PerProtocol<Duration> ring_hop{};      ///< a step inside a node
  PerProtocol<Duration> tree_hop{};
  PerProtocol<Duration> ring_net_hop{};  ///< a step between nodes, without the NIC's latency
  PerProtocol<Duration> tree_net_hop{};
  PerProtocol<double> bandwidth_share{1, 1, 1};  ///< bandwidth share of a link that the protocol
                                                 ///< reaches
  Bytes low_latency_below{0};        ///< messages of at least this size do not use LL
  Bytes channel_quantum{0};          ///< least bytes of a channel for each rank of a ring
  double local_copies = 0.0;         ///< copies of a ring that cross no link, in steps
  double ring_net_factor = 1.0;      ///< factor on a Simple ring's latency between nodes
  double tree_share = 1.0;           ///< bandwidth share of a link that a tree reaches
  bool nvls = false;                 ///< NVSwitch reduces and multicasts
  Duration nvls_hop{};
  Duration nvls_net_hop{};
  double nvls_share = 1.0;
  Duration p2p_base{};               ///< send and receive, all-to-all
  std::uint32_t node_channels = 1;   ///< blocks of a collective inside a node
  std::uint32_t net_channels = 1;    ///< blocks of a collective between nodes, at most
  std::uint32_t p2p_channels = 1;    ///< blocks of a send or a receive
  /// The most that one block moves over its GPU's port; 0: not known.
  BytesPerSecond block_bandwidth;
  /// Local memory bandwidth of one block, for computation that is fused into its kernel.
  BytesPerSecond block_local_bandwidth;
};

struct ClusterSpec {
  std::string name;
  std::string device;  ///< id of a device file
  std::uint32_t gpus_per_node = 1;
  std::uint32_t nodes = 1;
  NodeFabricSpec node;
  NicSpec nics;
  FatTreeSpec tree;
  std::optional<RegionSpec> regions;
  CollectiveSpec collectives;

  [[nodiscard]] std::uint32_t gpus() const { return gpus_per_node * nodes; }
};

/// The same cluster with another number of nodes, at least 1.
[[nodiscard]] ClusterSpec with_nodes(ClusterSpec spec, std::uint32_t nodes);

// Reads cluster files (configs/clusters/*.json; each key is explained in
// configs/clusters/README.md). As in device files every constant carries its unit and source, and
// all faults of a file are reported at once.

/// A cluster file as read.
struct ClusterFile {
  std::string id;    ///< file name without ".json": "dgx-a100-80gb"
  std::string path;
  ClusterSpec spec;
};

[[nodiscard]] CheckedResult<ClusterSpec> read_cluster_spec(const std::string& path);

/// All "*.json" of a folder, ordered by id.
[[nodiscard]] CheckedResult<std::vector<ClusterFile>> read_cluster_folder(
    const std::string& folder);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`.
[[nodiscard]] CheckedResult<ClusterSpec> find_cluster_spec(std::string_view name,
                                                           const std::string& folder);

/// Reads every constant; faults go to the reader's error list. Ends with root.finish().
[[nodiscard]] ClusterSpec read_cluster(ObjectReader& root);

}  // namespace bubblesim::hardware
