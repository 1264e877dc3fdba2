// Finds starts for nodes of Chakra files that record none: plays the job once, all ranks together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/result.hpp"
#include "traces/import/chakra/chakra_node.hpp"
#include "traces/import/collective_times.hpp"

namespace bubblesim::traces::chakra {

/// One rank's file: ids resolved, lanes assigned.
struct RankFile {
  File* file = nullptr;
  std::uint32_t rank = 0;
};

/// Whether any node that takes time has no recorded start.
[[nodiscard]] bool lacks_starts(const File& file);

/// Plays the ranks of a job. A node is ready when its data dependencies are done (without any: when
/// its callers have started); a free stream or thread takes the ready node of the least id, as
/// Chakra's feeder does. A collective ends its duration after its last rank has started it; the
/// n-th start of a group, kind and pair of ends on one rank meets the n-th on every other. A
/// receive waits for its send; a send does not wait, since ASTRA-sim keeps data that arrives before
/// its receive (CommonNetworkApi.cc, process_chunk_arrival). Recorded starts stay. Sets starts, and
/// durations of collectives, including their waiting. Returns, by rank, each node's place in the
/// order of starts. In a deadlock, a cycle of dependencies is opened at its least id, else the
/// collective that has waited longest ends without its partners (ChakraNode::left_meeting); both
/// are counted. O(n log n + dependencies). Fault: the layout takes longer than 73 years.
[[nodiscard]] Result<std::vector<std::vector<std::uint32_t>>> lay_out(
    std::span<const RankFile> ranks);

// Gives times to a Chakra job's collectives that have none.

/// Sets the missing durations of collectives of several ranks by `times`; counts collectives that
/// still have none. The ranks of a collective are those that a file declares for its group; else
/// those that use the group's name; without a name all of the job's `world`. The ranks of a
/// collective along only some dimensions of a topology are not known. Empty `times`: no durations.
/// Fault: one of `times`.
[[nodiscard]] Result<void> time_collectives(std::span<const RankFile> ranks, std::uint32_t world,
                                            const CollectiveTimes& times);

}  // namespace bubblesim::traces::chakra
