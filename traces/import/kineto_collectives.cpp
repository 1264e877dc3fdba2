// What Kineto does not record of collectives, filled in from names, ranges, groups and order.
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/import/kineto_counters.hpp"
#include "traces/import/kineto_join.hpp"
#include "traces/join/nccl_ranges.hpp"
#include "traces/meeting_key.hpp"

namespace bubblesim::traces {
namespace {

void kinds_from_ranges(std::vector<PendingCollective>& collectives, RankTrace& trace) {
  const NcclRanges ranges(trace);
  std::uint64_t found = 0;
  for (const DeviceOp& op : trace.device_ops) {
    if (op.collective == kNone || op.launch == kNone) continue;
    PendingCollective& entry = collectives[op.collective];
    if (entry.recorded) continue;
    if (const auto kind = ranges.kind_of(entry.record.kind, trace.host_calls[op.launch])) {
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

/// What counts together: the collectives of a group; apart from them, its sends to one rank and its
/// receives from one.
using Numbered = std::tuple<NameId, CollectiveKind, std::vector<std::uint32_t>>;

Numbered numbered_with(const Collective& record) {
  if (!is_point_to_point(record.kind)) return {record.group, CollectiveKind::kUnknown, {}};
  return {record.group, record.kind, record.peers};
}

/// PyTorch's numbers of sends and receives say nothing (meeting_key.hpp), and a batch of them takes
/// a number of its group's collectives on the ranks that make it alone (startCoalescing in
/// ProcessGroupNCCL.cpp).
void number_groups(RankTrace& trace) {
  std::set<NameId> sending;
  for (const Collective& record : trace.collectives) {
    if (is_point_to_point(record.kind)) sending.insert(record.group);
  }
  for (Collective& record : trace.collectives) {
    if (sending.contains(record.group)) record.sequence_recorded = false;
  }
  trace.counters.add(kineto::kSequenceByOrder, number_by_order(trace.collectives, numbered_with));
}

}  // namespace

void complete_collectives(std::vector<PendingCollective>& collectives,
                          std::vector<AnnouncedTransfer> announced,
                          const KinetoMetadata& metadata, RankTrace& trace) {
  kinds_from_ranges(collectives, trace);
  describe_transfers(std::move(announced), collectives, trace);
  std::uint64_t unlinked = 0;
  std::uint64_t unknown = 0;
  for (PendingCollective& entry : collectives) {
    complete_group(entry, metadata, trace);
    name_partners(entry);
    unlinked += entry.recorded ? 0 : 1;
    unknown += entry.record.kind == CollectiveKind::kUnknown ? 1 : 0;
  }
  trace.counters.add(kineto::kUnlinkedCollectives, unlinked);
  trace.counters.add(kineto::kUnknownCollectives, unknown);
  trace.collectives.reserve(collectives.size());
  for (PendingCollective& entry : collectives) {
    trace.collectives.push_back(std::move(entry.record));
  }
  number_groups(trace);
}

}  // namespace bubblesim::traces
