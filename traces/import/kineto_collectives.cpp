// What Kineto does not record of collectives, filled in from names, ranges, groups and order.
#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/import/kineto_counters.hpp"
#include "traces/import/kineto_join.hpp"
#include "traces/join/launch_order.hpp"
#include "traces/join/nccl_ranges.hpp"
#include "traces/meeting_key.hpp"
#include "traces/names/collective_names.hpp"

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

void complete_group(PendingCollective& entry, const KinetoMetadata& metadata, RankTrace& trace) {
  Collective& record = entry.record;
  const bool named = !trace.names[record.group].empty();
  const ProcessGroup* group = nullptr;
  if (named) {
    const std::string& name = trace.names[record.group];
    const auto found = std::ranges::find(metadata.groups, name, &ProcessGroup::name);
    if (found != metadata.groups.end()) group = &*found;
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

// Whom sends and receives meet: from the kernel's arguments, from PyTorch's operators and from its
// ranges.
//
// PyTorch from 2.2 on names a range "nccl:send 0->1", of places in the group (pytorch/pytorch pull
// request 111811); before, "nccl:send". From 2.5 on the operator record_param_comms has "Rank", the
// other end's place, and "Src Rank" or "Dst Rank", its rank in the job (129528, 130812), which
// kernels carry too. The kernel of a batch (batch_isend_irecv) is launched after all of it: it
// carries nothing (issue 194693), and the batch's operators or ranges stand before its launch.

constexpr std::string_view kRangePrefix = "nccl:";
/// A batch of more is not looked at as a whole: hostile files stay linear.
constexpr std::size_t kMostOfBatch = 4096;

std::optional<std::uint32_t> take_place(std::string_view& text) {
  std::uint32_t place = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), place);
  if (fault != std::errc{} || place >= kNone - 1) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return place;
}

/// "nccl:send 0->1", "nccl:recv 1<-0", "nccl:send".
std::optional<TransferEnd> end_in_range(std::string_view name) {
  if (!name.starts_with(kRangePrefix)) return std::nullopt;
  name.remove_prefix(kRangePrefix.size());
  const std::size_t blank = std::min(name.find(' '), name.size());
  TransferEnd end{kind_of_collective(name.substr(0, blank)), {}, {}, {}};
  if (!is_one_end(end.kind)) return std::nullopt;
  name.remove_prefix(std::min(blank + 1, name.size()));
  const auto own = take_place(name);
  const bool arrow = name.starts_with("->") || name.starts_with("<-");
  if (!own || !arrow) return end;
  name.remove_prefix(2);
  end.partner = take_place(name);
  if (end.partner) end.own = own;
  return end;
}

/// By thread, in order of start; the range within an operator adds what that lacks.
std::vector<std::vector<AnnouncedTransfer>> by_thread(std::vector<AnnouncedTransfer> announced,
                                                      const RankTrace& trace) {
  for (const Marker& marker : trace.markers) {
    const auto end = end_in_range(trace.names[marker.name]);
    if (!end) continue;
    AnnouncedTransfer entry{marker.start, marker.duration, marker.thread, {}};
    entry.what.record.kind = end->kind;
    entry.what.ends = {*end};
    announced.push_back(std::move(entry));
  }
  std::ranges::stable_sort(announced, {}, [](const AnnouncedTransfer& entry) {
    return std::pair(entry.start, -entry.duration);
  });
  std::vector<std::vector<AnnouncedTransfer>> threads(trace.threads.size());
  for (AnnouncedTransfer& entry : announced) {
    auto& thread = threads[entry.thread.index()];
    if (thread.empty() || thread.back().end() < entry.end()) {
      thread.push_back(std::move(entry));
      continue;
    }
    TransferEnd& outer = thread.back().what.ends[0];
    const TransferEnd& inner = entry.what.ends[0];
    if (!outer.own) outer.own = inner.own;
    if (!outer.partner) outer.partner = inner.partner;
  }
  return threads;
}

/// Gives a kernel what announces it.
void take(const AnnouncedTransfer& announced, PendingCollective& entry) {
  const Collective& told = announced.what.record;
  Collective& record = entry.record;
  entry.recorded = entry.recorded || announced.what.recorded;
  if (told.group.index() != 0) record.group = told.group;
  if (record.group_size == 0) record.group_size = told.group_size;
  if (record.peers.empty()) record.peers = told.peers;
  entry.ranks_cut = entry.ranks_cut || announced.what.ranks_cut;
  record.bytes += told.bytes;
  entry.ends.push_back(announced.what.ends[0]);
}

class Announcements {
 public:
  Announcements(std::vector<AnnouncedTransfer> announced, const RankTrace& trace)
      : threads_(by_thread(std::move(announced), trace)), next_(threads_.size(), 0) {}

  /// Launches of a thread come in order.
  void describe(const HostCall& launch, PendingCollective& entry) {
    const auto& thread = threads_[launch.thread.index()];
    std::size_t& next = next_[launch.thread.index()];
    const std::size_t first = next;
    while (next < thread.size() && thread[next].start <= launch.start) ++next;
    if (next == first) return;
    const bool around = thread[next - 1].end() >= launch.start;
    if (!entry.ends.empty() && !around) return;
    if (!entry.ends.empty()) {
      TransferEnd& end = entry.ends[0];
      const TransferEnd& told = thread[next - 1].what.ends[0];
      end.own = told.own;
      end.partner = told.partner;
      return;
    }
    if (next - first > kMostOfBatch) return;
    for (std::size_t i = around ? next - 1 : first; i < next; ++i) take(thread[i], entry);
  }

 private:
  std::vector<std::vector<AnnouncedTransfer>> threads_;
  std::vector<std::size_t> next_;  ///< by thread
};

/// Gives the kernels of sends and receives the data that the host announced.
void describe_transfers(std::vector<AnnouncedTransfer> announced,
                        std::vector<PendingCollective>& collectives, RankTrace& trace) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> launches;  // call, collective
  for (const DeviceOp& op : trace.device_ops) {
    if (op.collective == kNone || op.launch == kNone) continue;
    if (!is_point_to_point(collectives[op.collective].record.kind)) continue;
    if (trace.host_calls[op.launch].kind == HostCallKind::kLaunchGraph) continue;
    launches.emplace_back(op.launch, op.collective);
  }
  std::ranges::sort(launches);
  Announcements announcements(std::move(announced), trace);
  for (const auto& [call, collective] : launches) {
    announcements.describe(trace.host_calls[call], collectives[collective]);
  }
}

/// Narrows `peers` of a send, a receive or an exchange from its group to its partners, if
/// `entry.ends` names them.
void name_partners(PendingCollective& entry) {
  Collective& record = entry.record;
  if (entry.ends.empty()) return;
  const std::vector<std::uint32_t> group = std::exchange(record.peers, {});
  record.kind = entry.ends[0].kind;
  bool by_place = false;
  bool known = true;
  for (const TransferEnd& end : entry.ends) {
    if (end.kind != record.kind) record.kind = CollectiveKind::kSendRecv;
    if (end.partner_rank) {
      record.peers.push_back(*end.partner_rank);
    } else if (end.partner && *end.partner < group.size()) {
      record.peers.push_back(group[*end.partner]);
    } else if (end.partner && end.own) {
      by_place = true;
      record.place = *end.own + 1;
      record.peers.push_back(*end.partner);
    } else {
      known = false;
    }
  }
  std::ranges::sort(record.peers);
  record.peers.erase(std::ranges::unique(record.peers).begin(), record.peers.end());
  if (record.peers.size() > 1 && record.kind != CollectiveKind::kSendRecv) {
    record.kind = CollectiveKind::kSendRecv;  // to several: each is a meeting of its own
  }
  if (known && (!by_place || group.empty())) return;
  record.peers = group;
  record.place = 0;
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

// Synchronisation rows (category cuda_sync, recorded when CUPTI's synchronisation activity is
// on): the one place of a Kineto file that names the streams and events of waits.

namespace {

std::uint32_t stream_index(const KinetoRecords& records, std::uint32_t device,
                           std::int64_t system_id) {
  if (system_id < 0) return kNone;
  const auto found = records.stream_ids.find({device, static_cast<std::uint64_t>(system_id)});
  return found == records.stream_ids.end() ? kNone : found->second;
}

void name_call(HostCall& call, std::uint32_t stream, std::int64_t event) {
  if (stream != kNone) call.stream = stream;
  if (event > 0) call.event = static_cast<std::uint64_t>(event);
}

}  // namespace

void apply_sync_rows(const KinetoRecords& records, const CallIndex& index, RankTrace& trace) {
  if (records.syncs.empty()) return;
  std::vector<EventWait> waits;
  std::uint64_t without_edge = 0;
  for (const SyncRow& row : records.syncs) {
    const std::uint32_t call = index.find(row.correlation, row.at, CallIndex::Want::kAny);
    const std::uint32_t stream = stream_index(records, row.device, row.stream);
    const std::uint32_t source = stream_index(records, row.device, row.waits_for_stream);
    if (call != kNone) name_call(trace.host_calls[call], stream, row.event);
    if (row.record_correlation < 0) continue;
    const std::uint32_t record = index.find(static_cast<std::uint64_t>(row.record_correlation),
                                            row.at, CallIndex::Want::kEventRecord);
    if (record != kNone) name_call(trace.host_calls[record], source, row.event);
    if (row.kind != SyncRow::Kind::kStreamWait) continue;
    const bool known = call != kNone && record != kNone && stream != kNone && source != kNone;
    if (known) waits.push_back({source, record, stream, call});
    else ++without_edge;
  }
  without_edge += add_wait_edges(std::move(waits), trace);
  trace.counters.add(kineto::kEdgesWithoutOps, without_edge);
}

}  // namespace bubblesim::traces
