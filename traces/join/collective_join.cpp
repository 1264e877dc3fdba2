// Communication kernels to collectives, by what announced them and by their names.
//
// Rule: a library announces a collective on the thread that launches its kernel, before it. So of
// each thread, an announcement belongs to the first launch of a communication kernel that starts
// at or after it and may carry it, of the next few: a group may end in several kernels. Several
// announcements for one launch were grouped into its kernel. Communicators that do not block
// launch from threads of their own, which announce nothing: an announcement on a thread that never
// launches belongs to the first of those launches, all together, as above.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/join/join_parts.hpp"
#include "traces/join/nccl_ranges.hpp"
#include "traces/meeting_key.hpp"
#include "traces/names/collective_names.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::string_view kPrefix = "nccl:";
constexpr int kDeepest = 8;  ///< ranges nest at most a few deep

}  // namespace

NcclRanges::NcclRanges(const RankTrace& trace) : ranges_(trace.threads.size()) {
  for (const Marker& marker : trace.markers) {
    std::string_view name = trace.names[marker.name];
    if (!name.starts_with(kPrefix)) continue;
    name.remove_prefix(kPrefix.size());
    const CollectiveKind kind = kind_of_collective(name.substr(0, name.find(',')));
    // One end of a transfer says no peer: known as it is here, it would no longer meet the other.
    if (kind == CollectiveKind::kUnknown || is_one_end(kind)) continue;
    ranges_[marker.thread.index()].push_back({marker.start, marker.start + marker.duration, kind});
  }
}

std::optional<CollectiveKind> NcclRanges::kind_of(CollectiveKind known,
                                                  const HostCall& launch) const {
  if (known != CollectiveKind::kSendRecv && known != CollectiveKind::kUnknown) return std::nullopt;
  const std::vector<Range>& ranges = ranges_[launch.thread.index()];
  auto range = std::ranges::upper_bound(ranges, launch.start, {}, &Range::start);
  for (int depth = 0; depth < kDeepest && range != ranges.begin(); ++depth) {
    --range;
    if (launch.start <= range->end) return range->kind;
  }
  return std::nullopt;
}

namespace {

struct CommLaunch {
  std::uint32_t call;
  std::uint32_t op;
};

/// Kinds by kernel name, looked up once a name.
class KernelNames {
 public:
  explicit KernelNames(const StringTable& names) : names_(names), known_(names.size(), kUnasked) {}

  [[nodiscard]] bool communicates(NameId name) {
    std::uint8_t& known = known_[name.index()];
    if (known == kUnasked) known = is_communication_kernel(names_[name]) ? 1 : 0;
    return known == 1;
  }

 private:
  static constexpr std::uint8_t kUnasked = 2;
  const StringTable& names_;
  std::vector<std::uint8_t> known_;
};

/// Gives every communication kernel a collective of its own, of the kind that its name says, or as
/// it was announced to the recorder when its graph was captured. By collective: was it announced?
std::vector<bool> make_collectives(RankTrace& trace, std::vector<Collective>& made) {
  std::vector<bool> announced;
  KernelNames names(trace.names);
  const NameId no_group = trace.names.intern("");
  for (DeviceOp& op : trace.device_ops) {
    if (op.kind == DeviceOpKind::kKernel && names.communicates(op.name)) {
      op.kind = DeviceOpKind::kCollective;
    }
    if (op.kind != DeviceOpKind::kCollective) {
      op.collective = kNone;
      continue;
    }
    Collective record;
    announced.push_back(op.collective != kNone);
    if (op.collective != kNone) {
      record = trace.collectives[op.collective];
    } else {
      record.kind = kind_of_kernel(trace.names[op.name]);
      record.group = no_group;
    }
    op.collective = static_cast<std::uint32_t>(made.size());
    made.push_back(std::move(record));
  }
  return announced;
}

/// Launches of communication kernels, a list a thread, in order of call.
std::vector<std::vector<CommLaunch>> comm_launches(const RankTrace& trace) {
  std::vector<std::vector<CommLaunch>> threads(trace.threads.size());
  for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {
    const DeviceOp& op = trace.device_ops[i];
    if (op.kind != DeviceOpKind::kCollective || op.launch == kNone) continue;
    const HostCall& call = trace.host_calls[op.launch];
    if (call.kind == HostCallKind::kLaunchGraph) continue;
    threads[call.thread.index()].push_back({op.launch, i});
  }
  for (auto& launches : threads) std::ranges::stable_sort(launches, {}, &CommLaunch::call);
  return threads;
}

/// May a kernel of kind `kernel` carry what was announced as `announced`?
bool agree(CollectiveKind kernel, CollectiveKind announced) {
  using enum CollectiveKind;
  const bool sends = is_point_to_point(kernel) || kernel == kAllToAll || kernel == kUnknown;
  return kernel == announced || sends || announced == kUnknown || kernel == kBarrier ||
         announced == kBarrier;
}

/// Kernels that one group of collectives may end in: one a kind.
constexpr std::size_t kGroupKernels = 8;

/// Launches in order of call; those before `next` start before the announcements that come.
struct LaunchQueue {
  std::vector<CommLaunch> launches;
  std::size_t next = 0;
};

class NoteJoin {
 public:
  NoteJoin(RankTrace& trace, std::vector<Collective>& made, std::vector<bool> noted)
      : trace_(trace), made_(made), noted_(std::move(noted)) {
    for (const Collective& record : made) kinds_.push_back(record.kind);
    std::vector<bool> announces(trace.threads.size(), false);
    for (const CollectiveNote& note : trace.notes) announces[note.thread.index()] = true;
    for (auto& launches : comm_launches(trace)) {
      std::vector<CommLaunch>& silent = silent_.launches;
      if (!announces[queues_.size()]) silent.insert(silent.end(), launches.begin(), launches.end());
      queues_.push_back({std::move(launches)});
    }
    std::ranges::stable_sort(silent_.launches, {}, &CommLaunch::call);
  }

  void join(const CollectiveNote& note) {
    if (note.collective == kNone) return unmatched();
    const Collective& announced = trace_.collectives[note.collective];
    LaunchQueue& own = queues_[note.thread.index()];
    const bool elsewhere = own.launches.empty();
    const std::uint32_t place = kernel_of(announced, note.start, elsewhere ? silent_ : own);
    if (place == kNone) return unmatched();
    elsewhere_ += elsewhere ? 1 : 0;
    put(announced, note.source, place);
  }

  /// Kinds that neither an announcement nor the kernel's name told.
  void ask_ranges() {
    const NcclRanges ranges(trace_);
    for (const DeviceOp& op : trace_.device_ops) {
      if (op.collective == kNone || op.launch == kNone || noted_[op.collective]) continue;
      CollectiveKind& kind = made_[op.collective].kind;
      const auto found = ranges.kind_of(kind, trace_.host_calls[op.launch]);
      if (!found) continue;
      kind = *found;
      ++by_range_;
    }
  }

  void count() {
    CounterSet& counters = trace_.counters;
    counters.add(join::kNotesUnmatched, unmatched_);
    counters.add(join::kNotesElsewhere, elsewhere_);
    counters.add(join::kNotesGrouped, grouped_);
    counters.add(join::kNotesByNvtx, by_nvtx_);
    counters.add(join::kKindsFromRanges, by_range_);
    counters.add(join::kStandIns, stood_in_);
    counters.add(join::kCollectivesWithoutNote,
                 static_cast<std::uint64_t>(std::count(noted_.begin(), noted_.end(), false)));
  }

 private:
  [[nodiscard]] bool starts_before(const CommLaunch& launch, TraceTime at) const {
    return trace_.host_calls[launch.call].start < at;
  }
  void unmatched() { ++unmatched_; }

  /// The kernel among the next few launches; kNone: none may carry the collective.
  [[nodiscard]] std::uint32_t kernel_of(const Collective& announced, TraceTime start,
                                        LaunchQueue& queue) const {
    const auto& launches = queue.launches;
    std::size_t& next = queue.next;
    while (next < launches.size() && starts_before(launches[next], start)) ++next;
    const std::size_t last = std::min(launches.size(), next + kGroupKernels);
    for (std::size_t i = next; i < last; ++i) {
      const std::uint32_t place = trace_.device_ops[launches[i].op].collective;
      if (!agree(kinds_[place], announced.kind)) continue;
      // Kernels of a group of calls are launched a communicator each; those of one group, on GPUs
      // of this process, differ in their place.
      const bool alike = made_[place].group == announced.group &&
                         made_[place].place == announced.place;
      if (!noted_[place] || alike) return place;
    }
    return kNone;
  }

  void put(const Collective& announced, CollectiveSource source, std::uint32_t place) {
    if (noted_[place]) {
      ++grouped_;
      return add(announced, made_[place]);
    }
    noted_[place] = true;
    made_[place] = announced;
    by_nvtx_ += source == CollectiveSource::kNvtx ? 1 : 0;
    stood_in_ += source == CollectiveSource::kStandIn ? 1 : 0;
  }

  /// What sends and receives, or does either with several, is an exchange with each of them; with
  /// all ranks of its group, an all-to-all.
  static void add(const Collective& announced, Collective& record) {
    record.bytes += announced.bytes;
    if (!is_point_to_point(record.kind) || !is_point_to_point(announced.kind)) return;
    const bool known = !record.peers.empty() && !announced.peers.empty();
    const bool alike = record.kind == announced.kind && record.peers == announced.peers;
    record.sequence_recorded = false;
    if (alike) return;
    record.kind = CollectiveKind::kSendRecv;
    record.peers.insert(record.peers.end(), announced.peers.begin(), announced.peers.end());
    std::ranges::sort(record.peers);
    record.peers.erase(std::ranges::unique(record.peers).begin(), record.peers.end());
    const bool with_all = record.group_size > 2 && record.peers.size() + 1 >= record.group_size;
    if (with_all) record.kind = CollectiveKind::kAllToAll;
    if (!known || with_all) record.peers.clear();
  }

  RankTrace& trace_;
  std::vector<Collective>& made_;
  std::vector<LaunchQueue> queues_;    ///< by thread
  LaunchQueue silent_;                 ///< of the threads that announce nothing
  std::vector<CollectiveKind> kinds_;  ///< as the kernels' names say
  std::vector<bool> noted_;
  std::uint64_t unmatched_ = 0, elsewhere_ = 0;
  std::uint64_t grouped_ = 0, by_nvtx_ = 0, by_range_ = 0, stood_in_ = 0;
};

/// One source speaks for a collective: where NCCL's profiler announced any, NVTX is not heard.
void drop_second_sources(std::vector<CollectiveNote>& notes) {
  const auto profiled = std::ranges::find(notes, CollectiveSource::kNcclProfiler,
                                          &CollectiveNote::source);
  if (profiled == notes.end()) return;
  std::erase_if(notes, [](const CollectiveNote& note) {
    return note.source == CollectiveSource::kNvtx;
  });
}

}  // namespace

void join_collectives(RankTrace& trace) {
  std::vector<Collective> made;
  std::vector<bool> announced = make_collectives(trace, made);
  drop_second_sources(trace.notes);
  NoteJoin notes(trace, made, std::move(announced));
  for (const CollectiveNote& note : trace.notes) notes.join(note);
  notes.ask_ranges();
  notes.count();
  trace.collectives = std::move(made);
  const auto unknown =
      std::ranges::count(trace.collectives, CollectiveKind::kUnknown, &Collective::kind);
  trace.counters.add(join::kCollectivesUnknown, static_cast<std::uint64_t>(unknown));
  trace.counters.add(join::kSequenceByOrder,
                     number_by_order(trace.collectives, [](const Collective& record) {
                       return std::pair(record.group, record.kind);
                     }));
}

}  // namespace bubblesim::traces
