// Shifts the times of a job's ranks to one clock: that of its first rank.
//
// Basis: a collective in which every rank waits for every other ends at the same moment on all of
// them, up to the time of the last bytes. The shift of a rank is the median, over matched
// collectives, of the difference of their ends. The report gives the remaining differences.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

inline constexpr CounterSpec kRankNotAligned{"align_ranks_without_collective", Severity::kLoss,
    "1: the rank shares no collective with any other; its clock was left as it is"};

struct RankAlignment {
  std::uint32_t rank = 0;
  std::uint32_t reference = 0;  ///< the rank with whose collectives its own were matched
  Duration offset{};            ///< added to every time of the rank
  std::uint64_t matched = 0;    ///< collectives that give the offset or, on a shared clock, only
                                ///< `residual_median`; 0: none
  std::uint64_t unmatched = 0;  ///< this rank's collectives of a matched kind without a partner
  Duration residual_median{};   ///< of |difference of ends| after the shift
  Duration residual_max{};
  bool ambiguous = false;       ///< another offset fits as well (`align_offset_ambiguous`)
};

struct AlignmentReport {
  std::vector<RankAlignment> ranks;  ///< in the order of JobTrace::ranks
  std::uint64_t matched = 0;
  std::uint64_t unmatched = 0;
  Duration residual_median{};  ///< over all matched collectives of all ranks
  Duration residual_max{};
  bool clocks_apart = false;   ///< some rank was placed on no other's clock
};

/// Shifts all times of every rank but the first. It matches all-reduces, all-gathers,
/// reduce-scatters, all-to-alls, barriers and kernels of unknown kind (expert dispatch). It does
/// not match sends, receives, broadcasts and reductions to one rank, whose ends may really differ.
/// Exception: a rank that shares no other kind with a placed one (a pipeline stage) is placed by
/// its sends and receives. Within a group, collectives are matched by recorded sequence number,
/// else by order, with the shift of order that leaves the least spread (ranks may have been
/// recorded over different windows), then the least offset. If steps repeat evenly and clocks are
/// about half a step apart, the shift with most pairs is used, and the rank is counted
/// (`align_offset_ambiguous`). A rank that shares no collective with the first is matched with
/// another placed rank. A rank that shares no collective with any stays unshifted, and is counted
/// (`kRankNotAligned`). A job whose layout is inferred (traces/trace_origin.hpp) stays unshifted
/// and uncounted. `clocks`: the name of each rank's clock; an empty name, or no list: the rank has
/// its own clock. Ranks of one clock move with the first of them that is placed, and need no
/// collective. A rank that was counted when its trace was written keeps a clock of its own.
AlignmentReport align_ranks(JobTrace& job, std::span<const std::string> clocks = {});

}  // namespace bubblesim::traces
