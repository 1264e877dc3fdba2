// The graph of a Chakra file: ids to nodes, nodes to streams and threads, and starts for nodes
// that have none.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "traces/import/chakra_node.hpp"

namespace bubblesim::traces::chakra {

/// Drops nodes whose id is taken; makes indices of the ids that nodes depend on.
void resolve_ids(File& file);

/// Gives every node of a device or host its lane; adds streams and threads as they appear.
void assign_lanes(File& file);

/// Starts every node that has no recorded one when all that it depends on has ended (where it
/// depends on nothing: its callers have started) and its lane is free; of those that could start,
/// the one that could first, ties in file order. Returns each node's place in the order of ties
/// of start: of the file where all starts are recorded, else that in which they were laid out.
/// O(n log n + dependencies).
/// Fault: the layout takes longer than 73 years.
[[nodiscard]] Result<std::vector<std::uint32_t>> lay_out(File& file);

}  // namespace bubblesim::traces::chakra
