#include "sim/workload/join_collectives.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/match_by_end.hpp"
#include "traces/inferred_layout.hpp"

namespace bubblesim::workload {
namespace {

using traces::CollectiveKind;

// A rank that ended this long before the last one started cannot have waited for it.
constexpr Duration kNotWaitingMargin = std::chrono::microseconds(50);

// Ends of one collective that differ by more than twice this are not the same collective's.
constexpr Duration kMatchGap = std::chrono::microseconds(500);

struct Part {
  std::size_t rank = 0;  // into JobProgram::ranks
  const CollectivePart* operation = nullptr;
};

// What parts of one collective have in common. Point-to-point operations carry their two ends,
// and a send meets a receive.
struct Key {
  std::string group;
  CollectiveKind kind = CollectiveKind::kUnknown;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t sequence = 0;
  auto operator<=>(const Key&) const = default;
};

bool is_point_to_point(const traces::Collective& collective) {
  return (collective.kind == CollectiveKind::kSend || collective.kind == CollectiveKind::kRecv) &&
         !collective.peers.empty();
}

Key base_key(const traces::RankTrace& trace, const traces::Collective& collective) {
  Key key;
  key.group = trace.names.size() == 0 ? std::string() : trace.names[collective.group];
  key.kind = collective.kind;
  if (!is_point_to_point(collective)) return key;
  std::uint32_t peer = collective.peers.front();
  for (const std::uint32_t rank : collective.peers) {
    if (rank != trace.rank) peer = rank;
  }
  const bool sends = collective.kind == CollectiveKind::kSend;
  key.kind = CollectiveKind::kSend;
  key.from = sends ? trace.rank : peer;
  key.to = sends ? peer : trace.rank;
  return key;
}

using Meetings = std::map<Key, std::vector<Part>>;

// Parts whose sequence was not recorded: by group and kind, each rank's in order of start.
using Unnumbered = std::map<Key, std::map<std::size_t, std::vector<const CollectivePart*>>>;

void collect_parts(const RankParts& parts, std::size_t rank, Meetings& meetings,
                   Unnumbered& unnumbered) {
  for (const CollectivePart& part : parts.parts) {
    Key key = base_key(*parts.trace, *part.collective);
    if (part.collective->sequence_recorded) {
      key.sequence = part.collective->sequence;
      meetings[key].push_back({rank, &part});
    } else {
      unnumbered[key][rank].push_back(&part);
    }
  }
}

std::vector<TraceTime> ends_of(const std::vector<const CollectivePart*>& parts) {
  std::vector<TraceTime> ends;
  for (const CollectivePart* part : parts) ends.push_back(part->recorded_end);
  return ends;
}

// Numbers parts by the rank that has most of them; what has no partner there stays alone.
void number_by_end(const Unnumbered& unnumbered, Meetings& meetings) {
  for (const auto& [base, by_rank] : unnumbered) {
    std::size_t longest = by_rank.begin()->first;
    for (const auto& [rank, parts] : by_rank) {
      if (parts.size() > by_rank.at(longest).size()) longest = rank;
    }
    const std::vector<TraceTime> reference = ends_of(by_rank.at(longest));
    Key key = base;
    std::uint64_t alone = reference.size();
    for (const auto& [rank, parts] : by_rank) {
      const auto partners = match_by_end(reference, ends_of(parts), kMatchGap);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        key.sequence = partners[i] == kUnmatched ? alone++ : partners[i];
        meetings[key].push_back({rank, parts[i]});
      }
    }
  }
}

class Joiner {
 public:
  Joiner(const std::vector<RankParts>& ranks, JobProgram& program)
      : ranks_(ranks), program_(program) {}

  void join(const Key& key, std::vector<Part> parts) {
    drop_repeats(parts);
    const CollectivePart* const send = buffered_send(key, parts);
    drop_not_waiting(parts, send);
    if (parts.size() < 2) {
      for (const Part& part : parts) program_.ranks[part.rank].counters.add(kNotJoined);
      return;
    }
    JoinedCollective joined;
    joined.participants = static_cast<std::uint32_t>(parts.size());
    joined.point_to_point = key.kind == CollectiveKind::kSend;
    joined.kind = key.kind;
    joined.group = group_index(key.group);
    if (key.from != key.to) {
      joined.from = key.from;
      joined.to = key.to;
    }
    joined.buffered = send != nullptr;
    const auto index = static_cast<std::uint32_t>(program_.collectives.size());
    const TraceTime arrival = last_start(parts);
    for (const Part& part : parts) {
      const traces::Collective& recorded = *part.operation->collective;
      joined.bytes = std::max(joined.bytes, recorded.bytes);
      joined.group_size = std::max(joined.group_size, recorded.group_size);
      if (recorded.group_size > parts.size() && !joined.point_to_point) {
        program_.ranks[part.rank].counters.add(kMissingPeers);
      }
      program::Op& op = program_.ranks[part.rank].ops[part.operation->op];
      op.collective = index;
      const TraceTime begin = part.operation == send ? send->start : arrival;
      op.duration = std::max(Duration{}, part.operation->end - begin);
    }
    program_.collectives.push_back(joined);
  }

 private:
  std::uint32_t group_index(const std::string& name) {
    if (name.empty()) return program::kNoIndex;
    const auto [place, fresh] =
        groups_.try_emplace(name, static_cast<std::uint32_t>(program_.groups.size()));
    if (fresh) program_.groups.push_back(name);
    return place->second;
  }
  static TraceTime last_start(const std::vector<Part>& parts) {
    TraceTime last = TraceTime::min();
    for (const Part& part : parts) last = std::max(last, part.operation->start);
    return last;
  }

  // Of a graph whose starts were laid out; a recorded send may have waited, so that it waits again.
  const CollectivePart* buffered_send(const Key& key, const std::vector<Part>& parts) const {
    if (key.from == key.to) return nullptr;
    for (const Part& part : parts) {
      const bool sends = part.operation->collective->kind == CollectiveKind::kSend;
      if (sends && traces::has_inferred_layout(*ranks_[part.rank].trace)) return part.operation;
    }
    return nullptr;
  }

  // A key that appears twice on a rank joins its first use only.
  void drop_repeats(std::vector<Part>& parts) {
    std::vector<Part> kept;
    for (const Part& part : parts) {
      const bool repeated = std::any_of(kept.begin(), kept.end(), [&](const Part& other) {
        return other.rank == part.rank;
      });
      if (repeated) {
        program_.ranks[part.rank].counters.add(kNotJoined);
      } else {
        kept.push_back(part);
      }
    }
    parts = std::move(kept);
  }

  // `send` waits for nobody: its receive may begin long after it.
  void drop_not_waiting(std::vector<Part>& parts, const CollectivePart* send) {
    for (bool dropped = true; dropped && parts.size() >= 2;) {
      dropped = false;
      const TraceTime arrival = last_start(parts);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].operation == send) continue;
        if (parts[i].operation->end + kNotWaitingMargin >= arrival) continue;
        program_.ranks[parts[i].rank].counters.add(kNotWaiting);
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
        dropped = true;
        break;
      }
    }
  }

  const std::vector<RankParts>& ranks_;
  JobProgram& program_;
  std::map<std::string, std::uint32_t> groups_;
};

}  // namespace

RankParts collective_parts(const Draft& draft) {
  RankParts out{draft.trace, {}};
  for (std::uint32_t i = 0; i < draft.ops.size(); ++i) {
    const DraftOp& op = draft.ops[i];
    const traces::DeviceOp& recorded = draft.recorded(op);
    if (recorded.collective == traces::kNone) continue;
    out.parts.push_back({i, &draft.trace->collectives[recorded.collective], op.start, op.end,
                         recorded.end()});
  }
  std::ranges::stable_sort(out.parts, {}, &CollectivePart::recorded_end);
  return out;
}

void join_collectives(const std::vector<RankParts>& ranks, JobProgram& program) {
  Meetings meetings;
  Unnumbered unnumbered;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    collect_parts(ranks[rank], rank, meetings, unnumbered);
  }
  number_by_end(unnumbered, meetings);
  Joiner joiner(ranks, program);
  for (auto& [key, parts] : meetings) joiner.join(key, std::move(parts));
}

}  // namespace bubblesim::workload
