#include "sim/workload/find_meetings.hpp"

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/workload/match_by_end.hpp"

namespace bubblesim::workload {
namespace {

using traces::CollectiveKind;
using traces::MeetingKey;
using std::chrono::microseconds;

// Ends of one collective that differ by more than twice this are not the same collective's.
constexpr Duration kMatchGap = microseconds(500);
// The same of sends and receives that do not say whom they meet: of two with one peer each, what
// one transfer takes is between them.
constexpr Duration kTransferGap = microseconds(50);
// Clocks of two ranks may differ by this much.
constexpr Duration kClockMargin = microseconds(50);

// More kernels that end so near to each other say nothing: hostile files stay linear.
constexpr std::size_t kMostTried = 64;

using List = std::vector<const CollectivePart*>;
using Lists = std::map<std::size_t, List>;  // by rank, by recorded end
using Parts = std::vector<Part>;            // by rank, each rank's once

bool numbered(const CollectivePart* part) { return part->collective->sequence_recorded; }

std::vector<TraceTime> ends_of(const List& parts) {
  std::vector<TraceTime> ends;
  for (const CollectivePart* part : parts) ends.push_back(part->recorded_end);
  return ends;
}

// ---- Collectives of a group

std::vector<Parts> rows_by_number(const Lists& by_rank) {
  std::map<std::uint64_t, Parts> by_number;
  for (const auto& [rank, parts] : by_rank) {
    for (const CollectivePart* part : parts) {
      Parts& row = by_number[part->collective->sequence];
      if (row.empty() || row.back().rank != rank) row.push_back({rank, part});
    }
  }
  std::vector<Parts> rows;
  for (auto& [number, row] : by_number) rows.push_back(std::move(row));
  return rows;
}

/// By number where every rank has them, else by the ends of the rank that has most.
std::vector<Parts> rows_of(const Lists& by_rank) {
  const auto all_numbered = [](const auto& entry) {
    return std::ranges::all_of(entry.second, numbered);
  };
  if (std::ranges::all_of(by_rank, all_numbered)) return rows_by_number(by_rank);
  const auto longest = std::ranges::max_element(
      by_rank, {}, [](const auto& entry) { return entry.second.size(); });
  const std::vector<TraceTime> reference = ends_of(longest->second);
  std::vector<Parts> rows(reference.size());
  for (const auto& [rank, parts] : by_rank) {
    const auto partners = match_by_end(reference, ends_of(parts), kMatchGap);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (partners[i] != kUnmatched) rows[partners[i]].push_back({rank, parts[i]});
    }
  }
  return rows;
}

std::uint32_t group_size(const Parts& row) {
  std::uint32_t size = 0;
  for (const Part& part : row) size = std::max(size, part.operation->collective->group_size);
  return size;
}

bool larger_than_group(const MeetingKey& key, const Parts& row) {
  const std::uint32_t size = group_size(row);
  if (size > 0 && row.size() > size) return true;
  return key.kind != CollectiveKind::kSend && !key.members.empty() &&
         row.size() > key.members.size();
}

TraceTime end_of(const Part& part) { return part.operation->recorded_end; }

using Candidates = std::vector<Part>;  // by recorded end

Candidates by_end(const Lists& by_rank) {
  Candidates parts;
  for (const auto& [rank, list] : by_rank) {
    for (const CollectivePart* part : list) parts.push_back({rank, part});
  }
  std::ranges::stable_sort(parts, {}, end_of);
  return parts;
}

/// Could a kernel of another rank as well have met those of the row, or did one not wait for all?
bool is_doubtful(const Parts& row, const Candidates& candidates) {
  const TraceTime first = end_of(std::ranges::min(row, {}, end_of));
  const TraceTime last = end_of(std::ranges::max(row, {}, end_of));
  const Duration reach = std::max(2 * (last - first), traces::kSameEnd);
  const auto is_rival = [&](const Part& part) {
    return !std::ranges::binary_search(row, part.rank, {}, &Part::rank);
  };
  const auto start = [](const Part& part) { return part.operation->recorded_start; };
  const auto begin = std::ranges::lower_bound(candidates, first - reach, {}, end_of);
  const auto beyond = std::ranges::upper_bound(candidates, last + reach, {}, end_of);
  const bool too_many = static_cast<std::size_t>(beyond - begin) > kMostTried * row.size();
  const bool late = first + kClockMargin < start(std::ranges::max(row, {}, start));
  return too_many || late || std::any_of(begin, beyond, is_rival);
}

// ---- Sends, receives and exchanges

/// Kernels that send in one direction of a pair of ranks, and those that receive; of all directions
/// of a group where kernels do not say whom they meet.
struct Lane {
  Lists from;
  Lists to;
};

using Pair = std::pair<Part, Part>;  // what sends, what receives

/// Can data have gone from one to the other? `ends_known`: it did, but a send that fits into NCCL's
/// buffers may end before its receive starts.
bool may_meet(const CollectivePart* send, const CollectivePart* receive, bool ends_known) {
  if (receive->recorded_end + kClockMargin < send->recorded_start) return false;
  return ends_known || send->recorded_end + kClockMargin >= receive->recorded_start;
}

std::vector<std::pair<std::size_t, std::size_t>> by_number(const List& from, const List& to) {
  std::map<std::uint64_t, std::size_t> places;
  for (std::size_t i = 0; i < from.size(); ++i) {
    places.try_emplace(from[i]->collective->sequence, i);
  }
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t j = 0; j < to.size(); ++j) {
    const auto place = places.find(to[j]->collective->sequence);
    if (place == places.end()) continue;
    found.emplace_back(place->second, j);
    places.erase(place);
  }
  return found;
}

/// By their ends. Where these say little though each has a partner by order, by order.
std::vector<std::pair<std::size_t, std::size_t>> match(const List& from, const List& to,
                                                       bool ends_known) {
  if (std::ranges::all_of(from, numbered) && std::ranges::all_of(to, numbered)) {
    return by_number(from, to);
  }
  std::vector<std::pair<std::size_t, std::size_t>> found;
  const auto partners =
      match_by_end(ends_of(from), ends_of(to), ends_known ? kMatchGap : kTransferGap);
  for (std::size_t j = 0; j < to.size(); ++j) {
    if (partners[j] == kUnmatched || !may_meet(from[partners[j]], to[j], ends_known)) continue;
    found.emplace_back(partners[j], j);
  }
  if (!ends_known || from.size() != to.size() || 2 * found.size() >= from.size()) return found;
  std::vector<std::pair<std::size_t, std::size_t>> ordered;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!may_meet(from[i], to[i], true)) return found;
    ordered.emplace_back(i, i);
  }
  return ordered;
}

/// The one of `others` that ends nearest; null: none does within kTransferGap, or another is about
/// as near.
const Part* nearest(const Part& own, const Candidates& others) {
  const TraceTime end = end_of(own);
  auto later = std::ranges::lower_bound(others, end, {}, end_of);
  auto earlier = later;
  const Part* found = nullptr;
  Duration reach = kTransferGap;
  for (std::size_t tried = 0; tried < kMostTried; ++tried) {
    const Duration after = later == others.end() ? Duration::max() : end_of(*later) - end;
    const Duration before =
        earlier == others.begin() ? Duration::max() : end - end_of(*std::prev(earlier));
    if (std::min(before, after) > reach) return found;
    const Part& next = before < after ? *--earlier : *later++;
    if (next.rank == own.rank || !may_meet(next.operation, own.operation, false)) continue;
    if (found != nullptr) return nullptr;
    found = &next;
    reach = std::max(2 * std::min(before, after), traces::kSameEnd);
  }
  return nullptr;
}

/// Kernels of several ranks may meet: pairs that end together as neither does with any other.
void pair_nearest(const Lane& lane, std::vector<Pair>& pairs) {
  const Candidates sends = by_end(lane.from);
  const Candidates receives = by_end(lane.to);
  for (const Part& send : sends) {
    const Part* const to = nearest(send, receives);
    const Part* const from = to == nullptr ? nullptr : nearest(*to, sends);
    if (from != nullptr && *from == send) pairs.emplace_back(send, *to);
  }
}

void pair_up(const MeetingKey& key, const Lane& lane, std::vector<Pair>& pairs) {
  Lists all = lane.from;
  all.insert(lane.to.begin(), lane.to.end());
  if (all.size() > 2) return pair_nearest(lane, pairs);
  const bool ends_known = key.kind == CollectiveKind::kSend;
  for (const auto& [from, sent] : lane.from) {
    for (const auto& [to, received] : lane.to) {
      if (from == to) continue;
      for (const auto& [i, j] : match(sent, received, ends_known)) {
        pairs.push_back({{from, sent[i]}, {to, received[j]}});
      }
    }
  }
}

/// Pairs that share a kernel are one meeting. A rank's second kernel in it has no meeting.
std::vector<Parts> components(const std::vector<Pair>& pairs) {
  std::map<Part, std::size_t> places;
  for (const auto& [send, receive] : pairs) {
    places.try_emplace(send, 0);
    places.try_emplace(receive, 0);
  }
  std::vector<Part> parts;
  for (auto& [part, place] : places) {
    place = parts.size();
    parts.push_back(part);
  }
  boost::disjoint_sets_with_storage<> sets(parts.size());
  for (const auto& [send, receive] : pairs) sets.union_set(places[send], places[receive]);
  std::vector<Parts> found;  // by their least part
  std::map<std::size_t, std::size_t> rows;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [place, fresh] = rows.try_emplace(sets.find_set(i), found.size());
    if (fresh) found.emplace_back();
    Parts& row = found[place->second];
    if (row.empty() || row.back().rank != parts[i].rank) row.push_back(parts[i]);
  }
  return found;
}

class Finder {
 public:
  explicit Finder(const std::vector<RankParts>& ranks) : ranks_(ranks) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (const CollectivePart& part : ranks[rank].parts) file({rank, &part});
    }
    complete_members();
  }

  std::vector<FoundMeeting> find() {
    std::vector<Pair> pairs;
    for (const auto& [key, lane] : lanes_) pair_up(key, lane, pairs);
    split_unnamed(held_by(pairs));
    for (const auto& [key, by_rank] : groups_) {
      const auto candidates = unnamed_.find({key.group, {}, key.kind});
      for (Parts& row : rows_of(by_rank)) {
        const bool unnamed = row.size() > 1 && candidates != unnamed_.end();
        if (!unnamed || !is_doubtful(row, candidates->second)) add(key, std::move(row));
      }
    }
    for (Parts& row : components(pairs)) {
      MeetingKey key = transfer_of(row);
      add(std::move(key), std::move(row));
    }
    std::ranges::stable_sort(found_, {}, &FoundMeeting::key);
    return std::move(found_);
  }

 private:
  const traces::RankTrace& trace(const Part& part) const { return *ranks_[part.rank].trace; }

  void put(const MeetingKey& key, const Part& part) {
    List& list = groups_[key][part.rank];
    const auto place = std::ranges::upper_bound(list, part.operation->recorded_end, {},
                                                &CollectivePart::recorded_end);
    list.insert(place, part.operation);
  }

  void file(const Part& part) {
    const traces::Collective& record = *part.operation->collective;
    if (!traces::is_point_to_point(record.kind)) {
      return put(traces::group_key(trace(part), record), part);
    }
    const std::vector<traces::Transfer> transfers = traces::transfers(trace(part), record);
    for (const auto& [key, outgoing] : transfers) {
      (outgoing ? lanes_[key].from : lanes_[key].to)[part.rank].push_back(part.operation);
    }
    if (!transfers.empty()) return;
    MeetingKey key = traces::group_key(trace(part), record);
    key.kind = CollectiveKind::kSendRecv;
    if (traces::sends(record.kind)) lanes_[key].from[part.rank].push_back(part.operation);
    if (traces::receives(record.kind)) lanes_[key].to[part.rank].push_back(part.operation);
  }

  /// Where a record lacks its group's ranks, another that names the group may have them.
  void complete_members() {
    std::map<std::string, std::set<std::vector<std::uint32_t>>> members;
    std::vector<std::pair<MeetingKey, Candidates>> lacking;
    for (const auto& [key, by_rank] : groups_) {
      if (!key.members.empty()) members[key.group].insert(key.members);
      else if (!key.group.empty()) lacking.emplace_back(key, by_end(by_rank));
    }
    for (auto& [key, parts] : lacking) {
      const auto& known = members[key.group];
      groups_.erase(key);
      for (const Part& part : parts) {
        const auto holds = [&](const std::vector<std::uint32_t>& ranks) {
          return std::ranges::binary_search(ranks, trace(part).rank);
        };
        const bool one = std::ranges::count_if(known, holds) == 1;
        put(one ? MeetingKey{key.group, *std::ranges::find_if(known, holds), key.kind} : key, part);
      }
    }
  }

  /// Ranks that send to each other, over others or at once.
  std::vector<traces::HeldTogether> held_by(const std::vector<Pair>& pairs) const {
    boost::disjoint_sets_with_storage<> sets(ranks_.size());
    std::vector<std::size_t> sent(ranks_.size());
    for (const auto& [send, receive] : pairs) {
      sets.union_set(send.rank, receive.rank);
      ++sent[send.rank];
    }
    std::vector<traces::HeldTogether> held(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      traces::HeldTogether& together = held[sets.find_set(rank)];
      together.ranks.insert(rank);
      together.times = std::max(together.times, sent[rank]);
    }
    return held;
  }

  /// A name alone does not make a group: where a record names neither it nor its ranks, or more
  /// ranks than it has use its name, those are one whose streams end together.
  void split_unnamed(const std::vector<traces::HeldTogether>& held) {
    std::set<std::string> names;
    for (const auto& [key, by_rank] : groups_) {
      if (!key.members.empty()) continue;
      const auto too_large = [&](const Parts& row) { return larger_than_group(key, row); };
      const bool named = !key.group.empty() && std::ranges::none_of(rows_of(by_rank), too_large);
      if (!named) names.insert(key.group);
    }
    for (const std::string& name : names) split(name, held);
  }

  void split(const std::string& name, const std::vector<traces::HeldTogether>& held) {
    const auto stream_of = [](const Part& part) {
      return traces::StreamOfRank(part.rank, part.operation->stream);
    };
    std::map<traces::StreamOfRank, std::vector<TraceTime>> ends;
    std::vector<MeetingKey> kinds;
    for (auto place = groups_.lower_bound({name, {}, {}});
         place != groups_.end() && place->first.group == name && place->first.members.empty();
         place = groups_.erase(place)) {
      kinds.push_back(place->first);
      Candidates& parts = unnamed_[place->first] = by_end(place->second);
      for (const Part& part : parts) ends[stream_of(part)].push_back(part.operation->recorded_end);
    }
    const auto groups = traces::ending_together(std::move(ends), held);
    for (const MeetingKey& kind : kinds) {
      for (const Part& part : unnamed_[kind]) {
        MeetingKey key = kind;
        for (const std::size_t rank : groups.at(stream_of(part))) {
          key.members.push_back(ranks_[rank].trace->rank);
        }
        put(key, part);
      }
    }
  }

  /// A send and its receive have their ranks as members, whatever numbers the recorder gave them.
  MeetingKey transfer_of(const Parts& row) const {
    MeetingKey key;
    key.group = traces::group_key(trace(row[0]), *row[0].operation->collective).group;
    key.kind = CollectiveKind::kSendRecv;
    for (const Part& part : row) key.members.push_back(trace(part).rank);
    if (row.size() != 2) return key;
    const CollectiveKind first = row[0].operation->collective->kind;
    const CollectiveKind second = row[1].operation->collective->kind;
    if (first == second) return key;
    key.kind = CollectiveKind::kSend;
    const bool forward = first == CollectiveKind::kSend || second == CollectiveKind::kRecv;
    if (!forward) std::swap(key.members[0], key.members[1]);
    return key;
  }

  void add(MeetingKey key, Parts row) {
    if (row.size() < 2 || larger_than_group(key, row)) return;
    found_.push_back({std::move(key), std::move(row)});
  }

  const std::vector<RankParts>& ranks_;
  std::map<MeetingKey, Lists> groups_;
  std::map<MeetingKey, Candidates> unnamed_;  // of groups that were split
  std::map<MeetingKey, Lane> lanes_;  // kSendRecv: of a group, whose ends are not known
  std::vector<FoundMeeting> found_;
};

}  // namespace

std::vector<FoundMeeting> find_meetings(const std::vector<RankParts>& ranks) {
  return Finder(ranks).find();
}

bool has_others(const std::vector<RankParts>& ranks, const Part& part) {
  const traces::RankTrace& own = *ranks[part.rank].trace;
  const traces::Collective& record = *part.operation->collective;
  if (record.place != 0 || record.peers.empty()) return ranks.size() > 1;
  return std::ranges::any_of(ranks, [&](const RankParts& other) {
    return other.trace != &own && std::ranges::count(record.peers, other.trace->rank) > 0;
  });
}

}  // namespace bubblesim::workload
