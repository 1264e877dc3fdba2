// A cluster's links, and the cost of collectives on them.
//
// Every link has two directions, out and in. The links are: a port of every GPU (of paired GPUs
// also a port to the partner), every NIC, the up-links of every leaf switch (as one link if flows
// are spread over them), every region's wide-area link. Immutable; may be read by many threads.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/network/fabric.hpp"

namespace bubblesim::network {

/// Members are first + i * outer_stride + j * inner_stride for i < outer, j < inner: 20 bytes for
/// any group of a regular parallel plan. Other groups have a list.
struct Group {
  std::uint32_t first = 0;
  std::uint32_t inner = 1;         ///< members of a run, inner_stride apart
  std::uint32_t inner_stride = 1;
  std::uint32_t outer = 1;         ///< runs, outer_stride apart
  std::uint32_t outer_stride = 1;
  std::vector<std::uint32_t> listed{};  ///< if not empty, the members, all distinct

  [[nodiscard]] std::uint32_t size() const;
  /// Ascending.
  [[nodiscard]] std::vector<std::uint32_t> members() const;
};

/// `count` members `stride` apart.
[[nodiscard]] Group strided_group(std::uint32_t first, std::uint32_t count,
                                  std::uint32_t stride = 1);

enum class CollectivePattern : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
  kSendRecv,  ///< from Group's first member to its second, as listed or strided
};

enum class Direction : std::uint8_t { kOut, kIn };

/// A collective's kernel other than NCCL's own (TokenWeave, arXiv 2505.11329).
struct CollectiveKernel {
  std::uint32_t blocks = 0;  ///< on each GPU, at most; 0: as NCCL
  double local_bytes = 0;    ///< further traffic in each GPU's own memory
  friend auto operator<=>(const CollectiveKernel&, const CollectiveKernel&) = default;
};

class Topology {
 public:
  /// Precondition: a cluster of several nodes has NICs (cluster files are checked for it).
  explicit Topology(hardware::ClusterSpec spec);

  [[nodiscard]] const hardware::ClusterSpec& spec() const { return spec_; }
  [[nodiscard]] const LinkTable& links() const { return links_; }

  /// The cost of a collective. `bytes` is the whole array, as in nccl-tests: each rank's input in
  /// an all-reduce, broadcast or all-to-all, the sum over ranks of the inputs (all-gather) or
  /// outputs (reduce-scatter). A group of one costs nothing. If `algorithm` does not apply to the
  /// collective or the group, the fastest one that does is taken; Transfer::algorithm names it.
  /// O(members). Preconditions: members are distinct and lie on the cluster; a `form` needs the
  /// cluster's CollectiveSpec::block_bandwidth.
  [[nodiscard]] Transfer plan(CollectivePattern kind, Bytes bytes, const Group& group,
                              Algorithm algorithm = Algorithm::kAuto,
                              const CollectiveKernel& form = {}) const;

  /// The cost of a kernel of `blocks` on each of the group's GPUs, all on one node, that reads
  /// `port_bytes` of the others' memory: without a protocol of NCCL.
  [[nodiscard]] Transfer plan_reads(double port_bytes, const Group& group, Duration latency,
                                    std::uint32_t blocks) const;

  [[nodiscard]] Duration solo_time(const Transfer& transfer) const {
    return network::solo_time(transfer, links_);
  }

  [[nodiscard]] LinkId port(std::uint32_t gpu, Direction direction) const;
  /// Between the GPUs of a pair. Precondition: NodeLink::kPairs.
  [[nodiscard]] LinkId pair_port(std::uint32_t gpu, Direction direction) const;
  /// The NIC that a GPU uses. Precondition: the cluster has NICs.
  [[nodiscard]] LinkId nic(std::uint32_t gpu, Direction direction) const {
    return nic_link(nic_of(gpu), direction);
  }
  /// Its number on the whole cluster, and the link of that number.
  [[nodiscard]] std::uint32_t nic_of(std::uint32_t gpu) const;
  [[nodiscard]] LinkId nic_link(std::uint32_t nic, Direction direction) const;
  /// The up-links of a node's leaf: all of them as one if flows are spread, else up-link `uplink`.
  [[nodiscard]] LinkId leaf(std::uint32_t node, Direction direction,
                            std::uint32_t uplink = 0) const;
  /// How many links represent a leaf's up-links: 1 if flows are spread over them, else all.
  [[nodiscard]] std::uint32_t uplinks() const;
  /// Precondition: the cluster has regions.
  [[nodiscard]] LinkId region(std::uint32_t node, Direction direction) const;

  [[nodiscard]] std::uint32_t node_of(std::uint32_t gpu) const { return gpu / spec_.gpus_per_node; }

 private:
  hardware::ClusterSpec spec_;
  LinkTable links_;
  std::uint32_t first_pair_ = 0;
  std::uint32_t first_nic_ = 0;
  std::uint32_t first_leaf_ = 0;
  std::uint32_t first_region_ = 0;
};

/// Bus bandwidth over algorithm bandwidth (bytes / time), as nccl-tests define it
/// (doc/PERFORMANCE.md): all-reduce 2(n-1)/n; all-gather, reduce-scatter and all-to-all (n-1)/n;
/// others 1.
[[nodiscard]] double bus_factor(CollectivePattern kind, std::uint32_t ranks);

}  // namespace bubblesim::network
