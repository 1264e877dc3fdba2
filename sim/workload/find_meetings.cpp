#include "sim/workload/find_meetings.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
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

using List = std::vector<const CollectivePart*>;
using Lists = std::map<std::size_t, List>;  // by rank, by recorded end
using Parts = std::vector<Part>;            // by rank, each rank's once

bool numbered(const CollectivePart* part) { return part->collective->sequence_recorded; }

std::vector<TraceTime> ends_of(const List& parts) {
  std::vector<TraceTime> ends;
  for (const CollectivePart* part : parts) ends.push_back(part->recorded_end);
  return ends;
}

/// Joins what belongs together: each item has the least of its set as root.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t item) {
    while (parent_[item] != item) item = parent_[item] = parent_[parent_[item]];
    return item;
  }
  void join(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

// ---- Collectives of a group

/// Numbered parts by number. The others by the rank that has most of them.
std::vector<Parts> rows_of(const Lists& by_rank) {
  std::map<std::uint64_t, Parts> by_number;
  Lists unnumbered;
  for (const auto& [rank, parts] : by_rank) {
    for (const CollectivePart* part : parts) {
      if (!numbered(part)) {
        unnumbered[rank].push_back(part);
        continue;
      }
      Parts& row = by_number[part->collective->sequence];
      if (row.empty() || row.back().rank != rank) row.push_back({rank, part});
    }
  }
  std::vector<Parts> rows;
  for (auto& [number, row] : by_number) rows.push_back(std::move(row));
  if (unnumbered.empty()) return rows;
  const auto longest = std::ranges::max_element(
      unnumbered, {}, [](const auto& entry) { return entry.second.size(); });
  const std::vector<TraceTime> reference = ends_of(longest->second);
  const std::size_t first = rows.size();
  rows.resize(first + reference.size());
  for (const auto& [rank, parts] : unnumbered) {
    const auto partners = match_by_end(reference, ends_of(parts), kMatchGap);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (partners[i] != kUnmatched) rows[first + partners[i]].push_back({rank, parts[i]});
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

/// Those of ranks that mostly end together.
std::vector<Lists> split(const Lists& by_rank) {
  std::vector<std::vector<TraceTime>> ends;
  for (const auto& [rank, parts] : by_rank) ends.push_back(ends_of(parts));
  const std::vector<std::size_t> groups = traces::ending_together(ends);
  std::map<std::size_t, Lists> lists;
  std::size_t place = 0;
  for (const auto& entry : by_rank) lists[groups[place++]].insert(entry);
  std::vector<Lists> found;
  for (auto& [first, list] : lists) found.push_back(std::move(list));
  return found;
}

/// A name alone does not make a group: where a record names neither it nor its ranks, or more ranks
/// than it has use its name, those are one that mostly end together.
std::vector<Parts> meetings_of_group(const MeetingKey& key, const Lists& by_rank) {
  std::vector<Parts> rows = rows_of(by_rank);
  const auto too_large = [&](const Parts& row) { return larger_than_group(key, row); };
  const bool is_group = !key.group.empty() && std::ranges::none_of(rows, too_large);
  if (!key.members.empty() || is_group) return rows;
  rows.clear();
  for (const Lists& list : split(by_rank)) {
    for (Parts& row : rows_of(list)) rows.push_back(std::move(row));
  }
  return rows;
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

/// How well the ends of two ranks' kernels agree: the sum of what is left of the margin.
Duration agreement(const List& from, const List& to) {
  Duration sum{};
  auto send = from.begin();
  for (auto receive = to.begin(); send != from.end() && receive != to.end();) {
    const Duration apart = (*send)->recorded_end - (*receive)->recorded_end;
    if (std::chrono::abs(apart) <= kTransferGap && may_meet(*send, *receive, false)) {
      sum += kTransferGap - std::chrono::abs(apart) + Duration{1};
      ++send;
      ++receive;
    } else if (apart < Duration{}) {
      ++send;
    } else {
      ++receive;
    }
  }
  return sum;
}

struct RankPair {
  Duration agreement{};
  std::size_t from = 0;
  std::size_t to = 0;
};

/// The pairs of ranks that may meet in a lane, those first that agree best.
std::vector<RankPair> rank_pairs(const Lane& lane) {
  std::vector<RankPair> pairs;
  const bool choice = lane.from.size() > 1 || lane.to.size() > 1;
  for (const auto& [from, sent] : lane.from) {
    for (const auto& [to, received] : lane.to) {
      if (from == to) continue;
      const Duration sum = choice ? agreement(sent, received) : Duration{};
      if (choice && sum == Duration{} && !numbered(sent.front())) continue;
      pairs.push_back({sum, from, to});
    }
  }
  std::ranges::stable_sort(pairs, std::greater{}, &RankPair::agreement);
  return pairs;
}

void pair_up(const MeetingKey& key, const Lane& lane, std::vector<Pair>& pairs) {
  const bool ends_known =
      key.kind == CollectiveKind::kSend && lane.from.size() == 1 && lane.to.size() == 1;
  std::set<const CollectivePart*> taken;
  const auto left = [&](const List& list) {
    List free = list;
    std::erase_if(free, [&](const CollectivePart* part) { return taken.contains(part); });
    return free;
  };
  for (const RankPair& ranks : rank_pairs(lane)) {
    const List from = left(lane.from.at(ranks.from));
    const List to = left(lane.to.at(ranks.to));
    if (from.empty() || to.empty()) continue;
    for (const auto& [i, j] : match(from, to, ends_known)) {
      pairs.push_back({{ranks.from, from[i]}, {ranks.to, to[j]}});
      taken.insert({from[i], to[j]});
    }
  }
}

/// Pairs that share a kernel are one meeting. A rank's second kernel in it meets nobody.
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
  Sets sets(parts.size());
  for (const auto& [send, receive] : pairs) sets.join(places[send], places[receive]);
  std::map<std::size_t, Parts> rows;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Parts& row = rows[sets.root(i)];
    if (row.empty() || row.back().rank != parts[i].rank) row.push_back(parts[i]);
  }
  std::vector<Parts> found;
  for (auto& [root, row] : rows) found.push_back(std::move(row));
  return found;
}

class Finder {
 public:
  explicit Finder(const std::vector<RankParts>& ranks) : ranks_(ranks) {
    note_members();
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (const CollectivePart& part : ranks[rank].parts) file({rank, &part});
    }
  }

  std::vector<FoundMeeting> find() {
    for (const auto& [key, by_rank] : groups_) {
      for (Parts& row : meetings_of_group(key, by_rank)) add(key, std::move(row));
    }
    std::vector<Pair> pairs;
    for (const auto& [key, lane] : lanes_) pair_up(key, lane, pairs);
    for (Parts& row : components(pairs)) {
      MeetingKey key = transfer_of(row);
      add(std::move(key), std::move(row));
    }
    std::ranges::stable_sort(found_, {}, &FoundMeeting::key);
    return std::move(found_);
  }

 private:
  const traces::RankTrace& trace(const Part& part) const { return *ranks_[part.rank].trace; }

  void note_members() {
    const auto lacks_members = [](const CollectivePart& part) {
      return !traces::is_point_to_point(part.collective->kind) && part.collective->peers.empty();
    };
    if (std::ranges::none_of(ranks_, [&](const RankParts& rank) {
          return std::ranges::any_of(rank.parts, lacks_members);
        })) {
      return;
    }
    for (const RankParts& rank : ranks_) {
      for (const CollectivePart& part : rank.parts) {
        if (traces::is_point_to_point(part.collective->kind)) continue;
        const MeetingKey key = traces::group_key(*rank.trace, *part.collective);
        if (!key.members.empty()) members_[key.group].insert(key.members);
      }
    }
  }

  /// Where a record lacks its group's ranks, another that names the group may have them.
  MeetingKey group_key(const Part& part) const {
    MeetingKey key = traces::group_key(trace(part), *part.operation->collective);
    const auto known = members_.find(key.group);
    if (!key.members.empty() || key.group.empty() || known == members_.end()) return key;
    for (const std::vector<std::uint32_t>& members : known->second) {
      if (!std::ranges::binary_search(members, trace(part).rank)) continue;
      if (!key.members.empty()) return traces::group_key(trace(part), *part.operation->collective);
      key.members = members;
    }
    return key;
  }

  void file(const Part& part) {
    const traces::Collective& record = *part.operation->collective;
    if (!traces::is_point_to_point(record.kind)) {
      groups_[group_key(part)][part.rank].push_back(part.operation);
      return;
    }
    const std::vector<std::uint32_t> partners = traces::partners(trace(part), record);
    if (partners.empty()) {
      MeetingKey key = traces::group_key(trace(part), record);
      key.kind = CollectiveKind::kSendRecv;
      put(part, lanes_[key], lanes_[key]);
    }
    for (const std::uint32_t partner : partners) {
      put(part, lanes_[traces::transfer_key(trace(part), record, partner, true)],
          lanes_[traces::transfer_key(trace(part), record, partner, false)]);
    }
  }

  static void put(const Part& part, Lane& out, Lane& in) {
    const CollectiveKind kind = part.operation->collective->kind;
    if (traces::sends(kind)) out.from[part.rank].push_back(part.operation);
    if (traces::receives(kind)) in.to[part.rank].push_back(part.operation);
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
  std::map<std::string, std::set<std::vector<std::uint32_t>>> members_;  // by group name
  std::map<MeetingKey, Lists> groups_;
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
