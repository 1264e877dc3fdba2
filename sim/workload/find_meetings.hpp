// Finds which communication kernels of different ranks meet.
//
// Collectives meet by group, kind and number; without numbers, by their ends. Sends, receives and
// exchanges meet in pairs: by the two ranks that the recorder names, in the order of each
// direction. If it names none, only a send and a receive may meet, of the two ranks whose kernels
// end together most often. Pairs that share an exchange are one meeting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "traces/meeting_key.hpp"

namespace bubblesim::workload {

/// An operation's part in a collective: all that joining needs of a rank's draft, so that only one
/// rank's draft is held at a time.
struct CollectivePart {
  std::uint32_t op = 0;  ///< into Program::ops
  const traces::Collective* collective = nullptr;
  StreamId stream{};
  TraceTime start{};         ///< as in the draft
  TraceTime end{};
  TraceTime recorded_start{};
  TraceTime recorded_end{};
};

struct RankParts {
  const traces::RankTrace* trace = nullptr;
  std::vector<CollectivePart> parts;  ///< by recorded end
};

struct Part {
  std::size_t rank = 0;  ///< into the job's ranks
  const CollectivePart* operation = nullptr;
  friend auto operator<=>(const Part&, const Part&) = default;
};

struct FoundMeeting {
  traces::MeetingKey key;
  std::vector<Part> parts;  ///< two or more, by rank, at most one for each rank of the group
};

/// Returns the meetings in order of their keys. Parts that none of them includes have no meeting.
[[nodiscard]] std::vector<FoundMeeting> find_meetings(const std::vector<RankParts>& ranks);

/// Whether the job has another rank that the part could meet, as far as its record names ranks.
[[nodiscard]] bool has_others(const std::vector<RankParts>& ranks, const Part& part);

}  // namespace bubblesim::workload
