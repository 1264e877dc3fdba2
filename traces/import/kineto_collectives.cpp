// What Kineto does not record of collectives, filled in from names, ranges, groups and order.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/names/collective_names.hpp"
#include "traces/import/kineto_counters.hpp"
#include "traces/import/kineto_join.hpp"

namespace bubblesim::traces {
namespace {

/// A host range "nccl:all_reduce" that encloses the launch of what it names.
struct NcclRange {
  TraceTime start{};
  TraceTime end{};
  CollectiveKind kind = CollectiveKind::kUnknown;
};

/// By thread, in order of start.
std::vector<std::vector<NcclRange>> nccl_ranges(const RankTrace& trace) {
  std::vector<std::vector<NcclRange>> ranges(trace.threads.size());
  for (const Marker& marker : trace.markers) {
    const std::string_view name = trace.names[marker.name];
    if (!name.starts_with("nccl:")) continue;
    const CollectiveKind kind = kind_of_collective(name.substr(5));
    if (kind == CollectiveKind::kUnknown) continue;
    ranges[marker.thread.index()].push_back({marker.start, marker.start + marker.duration, kind});
  }
  return ranges;
}

/// The innermost range around `at`; ranges nest at most a few deep.
std::optional<CollectiveKind> kind_around(const std::vector<NcclRange>& ranges, TraceTime at) {
  auto range = std::upper_bound(ranges.begin(), ranges.end(), at,
                                [](TraceTime t, const NcclRange& r) { return t < r.start; });
  for (int depth = 0; depth < 8 && range != ranges.begin(); ++depth) {
    --range;
    if (at <= range->end) return range->kind;
  }
  return std::nullopt;
}

void kinds_from_ranges(std::vector<PendingCollective>& collectives, RankTrace& trace) {
  const auto ranges = nccl_ranges(trace);
  std::uint64_t found = 0;
  for (const DeviceOp& op : trace.device_ops) {
    if (op.collective == kNone || op.launch == kNone) continue;
    PendingCollective& entry = collectives[op.collective];
    const bool vague = entry.record.kind == CollectiveKind::kSendRecv ||
                       entry.record.kind == CollectiveKind::kUnknown;
    if (entry.recorded || !vague) continue;
    const HostCall& call = trace.host_calls[op.launch];
    if (const auto kind = kind_around(ranges[call.thread.index()], call.start)) {
      entry.record.kind = *kind;
      ++found;
    }
  }
  trace.counters.add(kineto::kKindFromRange, found);
}

const ProcessGroup* find_group(const KinetoMetadata& metadata, std::string_view name) {
  for (const ProcessGroup& group : metadata.groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

void complete_group(PendingCollective& entry, const KinetoMetadata& metadata, RankTrace& trace) {
  Collective& record = entry.record;
  const bool named = !trace.names[record.group].empty();
  const ProcessGroup* group = nullptr;
  if (named) {
    group = find_group(metadata, trace.names[record.group]);
  } else if (metadata.groups.size() == 1) {
    group = &metadata.groups.front();
    record.group = trace.names.intern(group->name);
    trace.counters.add(kineto::kGroupGuessed);
  }
  if (group != nullptr) {
    if (record.peers.empty()) record.peers = group->ranks;
    if (record.group_size == 0) record.group_size = group->size;
  }
  if (entry.ranks_cut && record.peers.empty()) trace.counters.add(kineto::kRanksTruncated);
}

/// A group in which every collective has its number keeps them; the others count by order.
void number_groups(std::vector<PendingCollective>& collectives, RankTrace& trace) {
  std::map<NameId, bool> all_recorded;
  for (const PendingCollective& entry : collectives) {
    const auto place = all_recorded.try_emplace(entry.record.group, true).first;
    place->second = place->second && entry.record.sequence_recorded;
  }
  std::map<NameId, std::uint64_t> next;
  std::uint64_t by_order = 0;
  for (PendingCollective& entry : collectives) {
    if (all_recorded[entry.record.group]) continue;
    entry.record.sequence = next[entry.record.group]++;
    entry.record.sequence_recorded = false;
    ++by_order;
  }
  trace.counters.add(kineto::kSequenceByOrder, by_order);
}

}  // namespace

void complete_collectives(std::vector<PendingCollective>& collectives,
                          const KinetoMetadata& metadata, RankTrace& trace) {
  kinds_from_ranges(collectives, trace);
  std::uint64_t unlinked = 0;
  std::uint64_t unknown = 0;
  for (PendingCollective& entry : collectives) {
    complete_group(entry, metadata, trace);
    unlinked += entry.recorded ? 0 : 1;
    unknown += entry.record.kind == CollectiveKind::kUnknown ? 1 : 0;
  }
  trace.counters.add(kineto::kUnlinkedCollectives, unlinked);
  trace.counters.add(kineto::kUnknownCollectives, unknown);
  number_groups(collectives, trace);
  trace.collectives.reserve(collectives.size());
  for (PendingCollective& entry : collectives) {
    trace.collectives.push_back(std::move(entry.record));
  }
}

}  // namespace bubblesim::traces
