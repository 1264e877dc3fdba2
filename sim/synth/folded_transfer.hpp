// What a collective asks of the network if groups that are not simulated run it too.
//
// Each is planned; what all of them put on a link is that link's load. Mostly they lie on nodes
// alike, and the first stands for all. If a group straddles a node and another does not (3 tensor
// ranks on nodes of 8), or a leaf is full of them and another is not, the slowest does: they wait
// for each other where gradients are exchanged.
#pragma once

#include "sim/network/topology.hpp"
#include "sim/synth/rank_grid.hpp"

namespace bubblesim::synth {

/// Whether each of the groups takes as long as the others where it runs alone.
enum class Twins : std::uint8_t { kAlike, kApart };

struct FoldedTransfer {
  network::Transfer transfer;
  Twins twins = Twins::kAlike;
};

/// Plans as many groups as it takes until places on nodes, leaves and regions repeat, at most all:
/// O(ranks of a pipeline stage), as each is in one of them.
[[nodiscard]] FoldedTransfer folded_transfer(const network::Topology& topology,
                                             network::CollectivePattern kind, Bytes bytes,
                                             const Communicator& communicator,
                                             const network::CollectiveKernel& form);

}  // namespace bubblesim::synth
