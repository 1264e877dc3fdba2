// Starts for nodes of Chakra files that record none: the job is played once, all ranks together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/result.hpp"
#include "traces/import/chakra_node.hpp"
#include "traces/import/collective_times.hpp"

namespace bubblesim::traces::chakra {

/// One rank's file: ids resolved, lanes assigned.
struct RankFile {
  File* file = nullptr;
  std::uint32_t rank = 0;
};

/// Whether some node that takes time has no recorded start.
[[nodiscard]] bool lacks_starts(const File& file);

/// Plays the ranks of a job. A node is ready when the data that it depends on are there (where it
/// depends on none: when its callers have started); a stream or thread that is free takes the ready
/// node of the least id, as Chakra's feeder does. A collective ends its duration after its last
/// rank has started it; the n-th start of a group, kind and pair of ends on one rank meets the n-th
/// on every other. A receive waits for its send, a send does not wait: ASTRA-sim keeps what arrives
/// before the receive is there (CommonNetworkApi.cc, process_chunk_arrival). Recorded starts stay.
/// Sets starts, and durations of collectives with their waiting. Returns, by rank, each node's
/// place in the order of starts. If nothing goes on, a cycle of dependencies is opened at its least
/// id, else the collective that waits longest goes on without its partners
/// (ChakraNode::left_meeting); both are counted. O(n log n + dependencies). Fault: the layout takes
/// longer than 73 years.
[[nodiscard]] Result<std::vector<std::vector<std::uint32_t>>> lay_out(
    std::span<const RankFile> ranks);

// Times of a Chakra job's collectives that have none.

/// Gives each collective of several ranks that has no duration what `times` says of it; counts
/// those that keep none. Its ranks are those of its group, as a file declares them; else those that
/// use the group's name; without a name all of the job's `world`. If a collective goes along some
/// dimensions of a topology only, its ranks are not known. No `times`: all keep none. Fault: one of
/// `times`.
[[nodiscard]] Result<void> time_collectives(std::span<const RankFile> ranks, std::uint32_t world,
                                            const CollectiveTimes& times);

}  // namespace bubblesim::traces::chakra
