// The graph of a Chakra file: ids to nodes, nodes to streams and threads.
#pragma once

#include "traces/import/chakra_node.hpp"

namespace bubblesim::traces::chakra {

/// Sorts nodes by id, drops those whose id is taken; makes indices of the ids that nodes depend on.
void resolve_ids(File& file);

/// Gives every node of a device or host its lane; adds streams and threads as they appear.
void assign_lanes(File& file);

}  // namespace bubblesim::traces::chakra
