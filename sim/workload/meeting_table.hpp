// The meetings of a program with other ranks, and the device and host time before each: from these
// a run knows its next meeting, and a lower bound on the time until then (next_meetings).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/program/program.hpp"

namespace bubblesim::workload {

/// Work of another stream that a collective waits for.
struct MeetingEdge {
  std::uint32_t stream = 0;
  Duration through{};  ///< of the stream in a pass, up to the end of the awaited operation
};

/// A joined collective.
struct Meeting {
  Duration before{};             ///< work of its own stream in a pass before it
  Duration host_before{};        ///< host time of its thread in a pass before its launch
  std::uint32_t collective = 0;  ///< into JobProgram::collectives
  std::uint32_t thread = 0;      ///< the launching thread
  std::uint32_t first_edge = 0;  ///< into MeetingTable::edges
  std::uint32_t edge_count = 0;
};

/// "Work": the sum of the operations' own durations. "Host time": the sum of think times and costs
/// of steps. Both are lower bounds.
struct MeetingTable {
  struct Stream {
    Duration pass{};                ///< work of a pass
    std::vector<Meeting> meetings;  ///< in stream order
  };
  std::vector<Stream> streams;  ///< by stream
  std::vector<MeetingEdge> edges;
  std::vector<Duration> host_passes;         ///< by thread: host time of a pass
  std::vector<std::uint32_t> with_meetings;  ///< streams with meetings, ascending
  /// False: threads share a stream with meetings, whose order may then change from pass to pass.
  bool known = true;
};

[[nodiscard]] MeetingTable meeting_table(const program::Program& program);

/// The host's own time of the shortest iteration: a lower bound on the time between two ends of
/// iterations.
[[nodiscard]] Duration least_iteration(const program::Program& program);

}  // namespace bubblesim::workload
