// Calls of an export and what they waited for.
#include <algorithm>
#include <array>
#include <vector>

#include "traces/import/nsys_counters.hpp"
#include "traces/import/nsys_tables.hpp"

namespace bubblesim::traces::nsys {
namespace {

constexpr std::int64_t kNoId = 0xFFFFFFFF;  ///< how CUPTI says that there is no stream or event

std::uint64_t correlation_of(std::optional<std::int64_t> value) {
  return value && *value > 0 && *value <= kMaxTime ? static_cast<std::uint64_t>(*value) : 0;
}

// ---- Synchronisation

enum SyncColumn : std::size_t {
  kSyncStart, kSyncDevice, kSyncContext, kSyncStream, kSyncCorrelation, kSyncPid, kSyncEvent,
  kSyncEventSync
};
constexpr std::array<std::string_view, 8> kSyncColumns{
    "start", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "eventId",
    "eventSyncId"};

/// Newer drivers number each recording of an event; older ones give the event's number alone,
/// which is kept apart by a high bit.
std::uint64_t event_of(const Rows& rows) {
  const auto recording = rows.integer(kSyncEventSync);
  if (recording && *recording > 0) return static_cast<std::uint64_t>(*recording);
  const auto event = rows.integer(kSyncEvent);
  if (!event || *event < 0 || *event >= kNoId) return 0;
  return static_cast<std::uint64_t>(*event) | std::uint64_t{1} << 62U;
}

/// The device whose stream a row means. Rows of synchronisation give 0 whatever the device is;
/// their context tells, which the process's device operations name with its device.
std::optional<std::uint32_t> device_of(RankSet& set, const Rows& rows) {
  const std::int64_t recorded = rows.integer(kSyncDevice).value_or(-1);
  const Process* owner = set.process(rows.integer(kSyncPid));
  const auto context = rows.integer(kSyncContext);
  if (owner != nullptr && context) {
    const auto found = owner->device_of_context.find(*context);
    if (found != owner->device_of_context.end() && found->second != kNone) return found->second;
  }
  if (recorded < 0 || recorded > kMaxDevice) return std::nullopt;
  return static_cast<std::uint32_t>(recorded);
}

void read_sync_table(NsysSession& session, RankSet& set, std::string_view table,
                     HostCallKind kind) {
  Rows rows(session.database, table, kSyncColumns);
  std::uint64_t read = 0;
  while (rows.next()) {
    session.tick();
    const std::uint64_t correlation = correlation_of(rows.integer(kSyncCorrelation));
    const std::optional<std::uint32_t> device = device_of(set, rows);
    if (correlation == 0 || !device) continue;
    NsysRankBuilder* rank = set.of_device(rows.integer(kSyncPid), *device);
    if (rank == nullptr) continue;
    SyncRecord record;
    record.correlation = correlation;
    record.kind = kind;
    record.event = event_of(rows);
    const auto stream = rows.integer(kSyncStream);
    if (stream && *stream >= 0 && *stream < kNoId) {
      record.stream =
          rank->stream(*device, rows.integer(kSyncContext).value_or(0), *stream).value;
    }
    Process& owner = *set.process(rank->process);
    if (owner.ranks.size() > 1) {
      owner.rank_of_correlation.try_emplace(
          correlation, static_cast<std::uint32_t>(rank - set.ranks.data()));
    }
    rank->trace.syncs.push_back(record);
    ++read;
  }
  session.count(kSyncRows, read);
  session.finish(rows);
}

// ---- Calls

enum CallColumn : std::size_t {
  kCallStart, kCallEnd, kCallTid, kCallCorrelation, kCallName, kCallResult
};
constexpr std::array<std::string_view, 6> kCallColumns{
    "start", "end", "globalTid", "correlationId", "nameId", "returnValue"};

/// A call of a process with several GPUs.
struct UnrankedCall {
  RowSpan span;
  std::uint64_t correlation;
  std::optional<std::int64_t> name;
  std::int64_t thread;
  std::uint32_t rank;  ///< kNone: not known yet
};

void add_call(NsysSession& session, NsysRankBuilder& rank, const UnrankedCall& pending) {
  const NsysRankBuilder::Call known = rank.call(session, pending.name);
  HostCall call;
  call.start = pending.span.start;
  call.duration = pending.span.duration;
  call.correlation = pending.correlation;
  call.name = known.name;
  call.kind = known.kind;
  call.thread = rank.thread(pending.thread);
  rank.trace.host_calls.push_back(call);
}

/// Calls that name no GPU go where their thread's call before them went, else the one after.
void give_by_thread(NsysSession& session, RankSet& set, const Process& owner,
                    std::vector<UnrankedCall>& calls) {
  std::stable_sort(calls.begin(), calls.end(), [](const UnrankedCall& a, const UnrankedCall& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.span.start < b.span.start;
  });
  std::uint64_t given = 0;
  for (std::size_t first = 0; first < calls.size();) {
    std::size_t end = first;
    while (end < calls.size() && calls[end].thread == calls[first].thread) ++end;
    std::uint32_t last = owner.main;
    for (std::size_t i = first; i < end; ++i) {
      if (calls[i].rank == kNone) continue;
      last = calls[i].rank;
      break;
    }
    for (std::size_t i = first; i < end; ++i) {
      given += calls[i].rank == kNone ? 1 : 0;
      last = calls[i].rank == kNone ? last : calls[i].rank;
      add_call(session, set.ranks[last], calls[i]);
    }
    first = end;
  }
  session.count(kSharedCalls, given);
}

class CallReader {
 public:
  CallReader(NsysSession& session, RankSet& set)
      : session_(session), set_(set), pending_(set.processes().size()) {}

  void read(std::string_view table) {
    Rows rows(session_.database, table, kCallColumns);
    while (rows.next()) {
      session_.tick();
      const auto span = session_.span(rows.integer(kCallStart), rows.integer(kCallEnd));
      const auto tid = rows.integer(kCallTid);
      if (!span) {
        session_.count(kBadRows);
        continue;
      }
      failed_ += rows.integer(kCallResult).value_or(0) != 0 ? 1 : 0;
      add({*span, correlation_of(rows.integer(kCallCorrelation)), rows.integer(kCallName),
           thread_of(tid.value_or(0)), kNone},
          set_.process(tid));
    }
    session_.finish(rows);
  }

  void finish() {
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      give_by_thread(session_, set_, set_.processes()[i], pending_[i]);
    }
    session_.count(kForeignCalls, foreign_);
    session_.count(kFailedCalls, failed_);
  }

 private:
  void add(UnrankedCall call, Process* owner) {
    if (owner == nullptr) {
      ++foreign_;
    } else if (owner->ranks.size() == 1) {
      add_call(session_, set_.ranks[owner->main], call);
    } else {
      const auto found = owner->rank_of_correlation.find(call.correlation);
      if (found != owner->rank_of_correlation.end()) call.rank = found->second;
      pending_[static_cast<std::size_t>(owner - set_.processes().data())].push_back(call);
    }
  }

  NsysSession& session_;
  RankSet& set_;
  std::vector<std::vector<UnrankedCall>> pending_;  ///< by process
  std::uint64_t foreign_ = 0;
  std::uint64_t failed_ = 0;
};

bool may_wait(HostCallKind kind) {
  return kind == HostCallKind::kStreamSync || kind == HostCallKind::kDeviceSync ||
         kind == HostCallKind::kEventSync || kind == HostCallKind::kEventRecord ||
         kind == HostCallKind::kStreamWaitEvent;
}

void complete_rank(RankTrace& trace) {
  struct Entry {
    std::uint64_t correlation;
    TraceTime start;
    HostCallKind kind;
  };
  std::vector<Entry> calls;
  for (const HostCall& call : trace.host_calls) {
    if (call.correlation != 0 && may_wait(call.kind)) {
      calls.push_back({call.correlation, call.start, call.kind});
    }
  }
  std::stable_sort(calls.begin(), calls.end(), [](const Entry& a, const Entry& b) {
    return a.correlation < b.correlation;
  });
  for (SyncRecord& record : trace.syncs) {
    const auto found = std::lower_bound(
        calls.begin(), calls.end(), record.correlation,
        [](const Entry& entry, std::uint64_t wanted) { return entry.correlation < wanted; });
    if (found == calls.end() || found->correlation != record.correlation) continue;
    record.at = found->start;
    if (record.kind == HostCallKind::kOther) record.kind = found->kind;
  }
}

}  // namespace

void read_syncs(NsysSession& session, RankSet& set) {
  read_sync_table(session, set, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", HostCallKind::kOther);
  read_sync_table(session, set, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", HostCallKind::kEventRecord);
}

void read_calls(NsysSession& session, RankSet& set) {
  CallReader reader(session, set);
  reader.read("CUPTI_ACTIVITY_KIND_RUNTIME");
  reader.read("CUPTI_ACTIVITY_KIND_DRIVER");
  reader.finish();
}

void complete_syncs(RankSet& set) {
  for (NsysRankBuilder& rank : set.ranks) complete_rank(rank.trace);
}

}  // namespace bubblesim::traces::nsys
