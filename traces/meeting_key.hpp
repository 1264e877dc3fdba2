// Keys of meetings: the common properties of one meeting's parts, whatever recorded them.
// Importers, alignment and the join of ranks all use them.
//
// A collective of a whole group: its group, the group's ranks, its kind. A transfer: its group and
// its two ends. An exchange is a kernel that sends and receives: it meets each of its partners.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

struct MeetingKey {
  std::string group;
  std::vector<std::uint32_t> members;  ///< ascending; a transfer: from and to; empty: not known
  CollectiveKind kind = CollectiveKind::kUnknown;  ///< kSend: a send and its receive
  friend auto operator<=>(const MeetingKey&, const MeetingKey&) = default;
};

[[nodiscard]] inline bool sends(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kSendRecv;
}
[[nodiscard]] inline bool receives(CollectiveKind kind) {
  return kind == CollectiveKind::kRecv || kind == CollectiveKind::kSendRecv;
}
/// A send or a receive, which is one end of a transfer.
[[nodiscard]] inline bool is_one_end(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}
/// A send, a receive or an exchange. PyTorch numbers these on each rank separately, with equal
/// numbers in one batch, so that numbers do not identify meetings.
[[nodiscard]] inline bool is_point_to_point(CollectiveKind kind) {
  return sends(kind) || receives(kind);
}

/// The rank's number in the numbering of the record's `peers`.
[[nodiscard]] inline std::uint32_t own_number(const RankTrace& trace, const Collective& record) {
  return record.place == 0 ? trace.rank : record.place - 1;
}

/// The ranks at the other ends of a send, a receive or an exchange. Empty: not known; `peers` is
/// then the whole group, the rank itself among them, or nothing.
[[nodiscard]] inline std::vector<std::uint32_t> partners(const RankTrace& trace,
                                                         const Collective& record) {
  std::vector<std::uint32_t> others = record.peers;
  const bool of_group = std::erase(others, own_number(trace, record)) > 0;
  std::ranges::sort(others);
  others.erase(std::ranges::unique(others).begin(), others.end());
  if (of_group && others.size() > 1) others.clear();
  return others;
}

/// The job's ranks in the record's group. Empty: not known.
[[nodiscard]] inline std::vector<std::uint32_t> group_ranks(const RankTrace& trace,
                                                            const Collective& record) {
  const bool of_group = record.place == 0 && (!is_point_to_point(record.kind) ||
                                              std::ranges::count(record.peers, trace.rank) > 0);
  return of_group ? record.peers : std::vector<std::uint32_t>{};
}

/// The key of a collective of a whole group.
[[nodiscard]] inline MeetingKey group_key(const RankTrace& trace, const Collective& record) {
  MeetingKey key{trace.names.size() == 0 ? std::string() : trace.names[record.group], record.peers,
                 record.kind};
  std::ranges::sort(key.members);
  return key;
}

/// A send, a receive or an exchange with one partner.
struct Transfer {
  MeetingKey key;  ///< equal at its other end
  bool outgoing = false;
};
/// Empty: the partners are not known.
[[nodiscard]] inline std::vector<Transfer> transfers(const RankTrace& trace,
                                                     const Collective& record) {
  std::vector<Transfer> found;
  MeetingKey key = group_key(trace, record);
  key.kind = CollectiveKind::kSend;
  const std::uint32_t own = own_number(trace, record);
  for (const std::uint32_t partner : partners(trace, record)) {
    key.members = {own, partner};
    if (sends(record.kind)) found.push_back({key, true});
    key.members = {partner, own};
    if (receives(record.kind)) found.push_back({key, false});
  }
  return found;
}

/// Collectives with equal `key_of` keep their numbers if each has one; the others are numbered in
/// their order. Returns the count of the latter.
template <class KeyOf>
std::uint64_t number_by_order(std::vector<Collective>& collectives, const KeyOf& key_of) {
  using Key = decltype(key_of(collectives.front()));
  std::map<Key, bool> all_recorded;
  for (const Collective& record : collectives) {
    bool& recorded = all_recorded.try_emplace(key_of(record), true).first->second;
    recorded = recorded && record.sequence_recorded;
  }
  std::map<Key, std::uint64_t> next;
  std::uint64_t by_order = 0;
  for (Collective& record : collectives) {
    const Key key = key_of(record);
    if (all_recorded[key]) continue;
    record.sequence = next[key]++;
    record.sequence_recorded = false;
    ++by_order;
  }
  return by_order;
}

/// The greatest distance between ends of kernels that meet: medians are 4 to 15 us between eight
/// H100s.
inline constexpr Duration kSameEnd = std::chrono::microseconds(10);

/// A rank, by its index in the job, and one of its streams. Each communicator of PyTorch has its
/// own stream.
using StreamOfRank = std::pair<std::size_t, StreamId>;

/// Ranks that meet repeatedly in some way.
struct HeldTogether {
  std::set<std::size_t> ranks;
  std::size_t times = 0;  ///< greatest number of meetings of any of the ranks
};

/// Finds the groups of streams whose collectives name none, by the ends of their kernels. Streams
/// are of one group if their kernels end together about as closely as either's do with any other
/// rank's (stages of a pipeline also end together, up to a transfer between them). A stream that
/// may belong to another group gets none: it is about twice as far from its group as the group's
/// streams are from each other, or some ranks of its group already meet in other groups or in
/// `held`, and so end together anyway. O(streams^2 ends).
[[nodiscard]] std::map<StreamOfRank, std::set<std::size_t>> ending_together(
    std::map<StreamOfRank, std::vector<TraceTime>> ends, std::vector<HeldTogether> held = {});

}  // namespace bubblesim::traces
