// The network load of a collective that groups of folded ranks run too.
//
// Every group is planned; a link's load is what all groups put on it. Groups usually lie on nodes
// in one way, and the first stands for all. If a group straddles a node and another does not (3
// tensor ranks on nodes of 8), or one leaf is full of groups and another is not, the slowest stands
// for all, since groups wait for each other when gradients are exchanged.
#pragma once

#include "sim/network/topology.hpp"
#include "sim/synth/rank_grid.hpp"

namespace bubblesim::synth {

/// Does each of the groups take as long as the others when it runs alone?
enum class Twins : std::uint8_t { kAlike, kApart };

struct FoldedTransfer {
  network::Transfer transfer;
  Twins twins = Twins::kAlike;
};

/// Plans groups until their places on nodes, leaves and regions repeat, at most all. Complexity:
/// O(ranks of a pipeline stage).
[[nodiscard]] FoldedTransfer folded_transfer(const network::Topology& topology,
                                             network::CollectivePattern kind, Bytes bytes,
                                             const Communicator& communicator,
                                             const network::CollectiveKernel& form);

}  // namespace bubblesim::synth
