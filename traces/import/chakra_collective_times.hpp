// Times of a Chakra job's collectives that have none.
#pragma once

#include <cstdint>
#include <span>

#include "sim/base/result.hpp"
#include "traces/import/chakra_layout.hpp"
#include "traces/import/collective_times.hpp"

namespace bubblesim::traces::chakra {

/// Gives each collective of several ranks that has no duration what `times` says of it; counts
/// those that keep none. Its ranks are those of its group, as a file declares them; else those that
/// use the group's name; without a name all of the job's `world`. Along some dimensions of a
/// topology only, they are not known. No `times`: all keep none. Fault: one of `times`.
[[nodiscard]] Result<void> time_collectives(std::span<const RankFile> ranks, std::uint32_t world,
                                            const CollectiveTimes& times);

}  // namespace bubblesim::traces::chakra
