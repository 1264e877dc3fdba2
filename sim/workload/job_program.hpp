// The programs of a job's ranks and the collectives in which the ranks meet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/network/fabric.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/program/program.hpp"
#include "traces/inspect/sensitivities.hpp"
#include "traces/trace.hpp"

namespace bubblesim::workload {

/// A collective that was found on every participating rank.
struct JoinedCollective {
  std::uint32_t participants = 0;  ///< ranks; >= 2, or 1 if replicas are folded
  bool point_to_point = false;     ///< a send and its receive
  std::uint64_t bytes = 0;         ///< largest recorded; 0: not recorded
  traces::CollectiveKind kind = traces::CollectiveKind::kUnknown;  ///< kSend: point-to-point
  std::uint32_t group = program::kNoIndex;  ///< into JobProgram::groups; none: no name is known
  std::uint32_t group_size = 0;    ///< ranks of the real group; 0: all of them take part here
  std::uint32_t from = program::kNoIndex;  ///< point-to-point: the rank that sends; none: not known
  std::uint32_t to = program::kNoIndex;     ///< and the rank that receives
  std::uint32_t transfer = program::kNoIndex;  ///< into JobProgram::transfers; recorded ones: none
  /// Point-to-point, recorded: the send of `from` does not wait; the receive waits for the send.
  bool buffered = false;
};

/// The programs of a job's ranks, which meet in collectives.
struct JobProgram {
  std::vector<program::Program> ranks;
  std::vector<JoinedCollective> collectives;
  std::vector<std::string> groups;  ///< names of process groups
  std::vector<network::Transfer> transfers;  ///< of modelled collectives; several collectives may
                                             ///< share one
  network::LinkTable links;         ///< used by `transfers`
  std::vector<network::SlowLink> slow_links;  ///< faults of the links
  bool shared_hosts = false;  ///< threads of ranks wait for each other (StepDetail::after_rank)
  /// A recorded job's iterations: recorded ones, those of a pass, and a text on which and why ("4
  /// recorded, 3 used (1 to 3); left out: ..."). 0 and empty: not recorded.
  std::uint32_t iterations_recorded = 0;
  std::uint32_t iterations_used = 0;
  std::string iterations_text;
  bool queue_cut = false;           ///< some rank's pass: RankPass::queue_cut
  bool start_skew_unknown = false;  ///< some rank's pass: RankPass::start_skew_unknown
  /// A recorded job's ranks: how much later than the median rank each reaches collectives, on
  /// average.
  std::vector<Duration> lateness;
  /// A recorded job's ranks: the causes of each one's starts and waits, and the unexplained time.
  std::vector<traces::Explanation> explained;
  CounterSet counters;
};

/// The collectives of a job in the form of network::Rendezvous; points into `job`.
[[nodiscard]] std::vector<network::MeetingSpec> meetings(const JobProgram& job);

}  // namespace bubblesim::workload
