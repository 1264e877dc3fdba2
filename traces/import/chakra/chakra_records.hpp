// Turns the nodes of a Chakra file, after layout, into the records of a rank.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/import/chakra/chakra_node.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::chakra {

/// The group of collectives without a group, until the job's world is known.
inline constexpr std::string_view kWorldGroup = "world";

/// Expects resolved ids, lanes and starts; `order` breaks ties of start.
[[nodiscard]] RankTrace make_records(File file, const std::vector<std::uint32_t>& order);

// Resolves the graph of a Chakra file: ids to nodes, nodes to streams and threads.

/// Sorts nodes by id, drops nodes with a repeated id, turns the ids of dependencies into indices.
void resolve_ids(File& file);

/// Gives every device node its stream and every host node its thread, and adds new streams and
/// threads to the file.
void assign_lanes(File& file);

/// Finds the collectives among the device nodes, by type or by name, and their kinds.
void find_collectives(File& file);

}  // namespace bubblesim::traces::chakra
