// Whom sends and receives meet: from the kernel's arguments, from PyTorch's operators and from its
// ranges.
//
// PyTorch from 2.2 on names a range "nccl:send 0->1", of places in the group (pytorch/pytorch pull
// request 111811); before, "nccl:send". From 2.5 on the operator record_param_comms has "Rank", the
// other end's place, and "Src Rank" or "Dst Rank", its rank in the job (129528, 130812), which
// kernels carry too. The kernel of a batch (batch_isend_irecv) is launched after all of it: it
// carries nothing (issue 194693), and the batch's operators or ranges stand before its launch.
#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/import/kineto_join.hpp"
#include "traces/meeting_key.hpp"
#include "traces/names/collective_names.hpp"

namespace bubblesim::traces {
namespace {

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
  TransferEnd end{kind_of_collective(name.substr(0, name.find(' '))), {}, {}, {}};
  if (end.kind != CollectiveKind::kSend && end.kind != CollectiveKind::kRecv) return std::nullopt;
  name.remove_prefix(std::min(name.size(), name.find(' ') == name.npos ? name.size()
                                                                       : name.find(' ') + 1));
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

}  // namespace

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

}  // namespace bubblesim::traces
