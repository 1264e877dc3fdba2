// What a collective asks of the network where groups that are not simulated run it too.
//
// Mostly all of these lie on the nodes alike, and the simulated one stands for them
// (Group::siblings share its NICs). Where a group straddles a node and another does not (3 tensor
// ranks on nodes of 8), the slowest of them stands for all: they wait for each other where
// gradients are exchanged.
#pragma once

#include "sim/network/topology.hpp"
#include "sim/synth/rank_grid.hpp"

namespace bubblesim::synth {

/// Whether the groups folded into one share how each lies: by members of nodes, leaves, regions.
enum class Twins : std::uint8_t { kAlike, kApart };

struct FoldedTransfer {
  network::Transfer transfer;
  Twins twins = Twins::kAlike;
};

/// Looks at as many groups as it takes until places on nodes, leaves and regions repeat.
[[nodiscard]] FoldedTransfer folded_transfer(const network::Topology& topology,
                                             network::CollectiveKind kind, Bytes bytes,
                                             const Communicator& communicator,
                                             const network::KernelForm& form);

}  // namespace bubblesim::synth
