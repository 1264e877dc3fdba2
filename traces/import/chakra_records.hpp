// The nodes of a Chakra file, laid out, as the records of a rank.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/import/chakra_node.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::chakra {

/// The group of collectives that name none, until the job's world is known.
inline constexpr std::string_view kWorldGroup = "world";

/// Whether a device node named `name` is a collective, and of what kind.
[[nodiscard]] bool is_collective(const ChakraNode& node, std::string_view name);
[[nodiscard]] CollectiveKind kind_of_node(const ChakraNode& node, std::string_view name);

/// Expects resolved ids, lanes and starts; `order` breaks ties of start.
[[nodiscard]] RankTrace make_records(File file, const std::vector<std::uint32_t>& order);

// The graph of a Chakra file: ids to nodes, nodes to streams and threads.

/// Sorts nodes by id, drops those whose id is taken; makes indices of the ids that nodes depend on.
void resolve_ids(File& file);

/// Gives every node of a device or host its lane; adds streams and threads as they appear.
void assign_lanes(File& file);

}  // namespace bubblesim::traces::chakra
