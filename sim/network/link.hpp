// Links and what a collective asks of them.
//
// A link moves bytes in one direction at its capacity. A Transfer says which links a collective
// loads, and with how many bytes. It moves through all of them at once (chunks are pipelined), so
// alone it lasts
//
//   latency + max(least, max over links of bytes / capacity)
//
// where `least` is what the collective's own channels and protocol take for the bytes, however
// fast the links are.
//
// A Transfer may stand for those of several groups that run the same collective at once: its loads
// are then what all of them put on the links of one.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/cluster_spec.hpp"

namespace bubblesim::network {

using LinkId = StrongId<struct LinkTag>;  ///< index into a LinkTable

/// Capacities by LinkId.
using LinkTable = std::vector<BytesPerSecond>;

struct LinkLoad {
  LinkId link;
  double bytes = 0;  ///< that pass through the link; > 0
};

/// A fault of a link: for a while it is slower than its capacity.
struct SlowLink {
  LinkId link;
  double slowdown = 1;             ///< factor on the time that bytes take, > 0
  SimTime from = kSimStart;
  SimTime until = SimTime::max();  ///< > from, and not after the next fault of the same link
};

/// How a collective's ranks pass data on.
enum class Algorithm : std::uint8_t {
  kAuto,          ///< the fastest that NCCL would choose from: ring, tree, NVLS or direct
  kRing,          ///< one ring over all ranks
  kTree,          ///< double binary tree between nodes, chains inside (all-reduce)
  kNvls,          ///< the NVSwitch reduces and multicasts; a tree between nodes (all-reduce)
  kHierarchical,  ///< reduce-scatter in each node, rings between nodes, all-gather in each node
  kDirect,        ///< each sender to each receiver: send, all-to-all
};

struct Transfer {
  Duration latency{};           ///< before bytes move
  Duration least{};             ///< that the bytes move, with all links free
  std::vector<LinkLoad> loads;  ///< each link once
  /// Groups that it stands for on its most loaded link: its largest load over that of one group.
  double shares = 1;
  Algorithm algorithm = Algorithm::kRing;
  hardware::Protocol protocol = hardware::Protocol::kSimple;
  std::uint32_t channels = 1;   ///< blocks (one a channel) of the kernel on each rank
};

/// What the transfer lasts when nothing else uses its links; rounded up to whole nanoseconds.
[[nodiscard]] Duration solo_time(const Transfer& transfer, const LinkTable& links);

}  // namespace bubblesim::network
