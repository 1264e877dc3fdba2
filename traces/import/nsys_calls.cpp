// Calls of an export and what they waited for.
#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/import/nsys_session.hpp"
#include "traces/import/nsys_target.hpp"

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
const Columns kSyncColumns{
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
  std::uint64_t read = 0;
  session.each_row(table, kSyncColumns, [&](const Rows& rows) {
    const std::uint64_t correlation = correlation_of(rows.integer(kSyncCorrelation));
    const std::optional<std::uint32_t> device = device_of(set, rows);
    if (correlation == 0 || !device) return;
    NsysRankBuilder* rank = set.of_device(rows.integer(kSyncPid), *device);
    if (rank == nullptr) return;
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
  });
  session.count(kSyncRows, read);
}

// ---- Calls

enum CallColumn : std::size_t {
  kCallStart, kCallEnd, kCallTid, kCallCorrelation, kCallName, kCallResult
};
const Columns kCallColumns{
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
  std::ranges::stable_sort(calls, {}, [](const UnrankedCall& call) {
    return std::pair(call.thread, call.span.start);
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
    session_.each_row(table, kCallColumns, [&](const Rows& rows) {
      const auto span = session_.span(rows.integer(kCallStart), rows.integer(kCallEnd));
      const auto tid = rows.integer(kCallTid);
      if (!span) return session_.count(kBadRows);
      failed_ += rows.integer(kCallResult).value_or(0) != 0 ? 1 : 0;
      add({*span, correlation_of(rows.integer(kCallCorrelation)), rows.integer(kCallName),
           thread_of(tid.value_or(0)), kNone},
          set_.process(tid));
    });
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
  return is_synchronisation(kind) || kind == HostCallKind::kEventRecord ||
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
  std::ranges::stable_sort(calls, {}, &Entry::correlation);
  for (SyncRecord& record : trace.syncs) {
    const auto found = std::ranges::lower_bound(calls, record.correlation, {}, &Entry::correlation);
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

// What held the threads of an export's processes, and how much memory they had.

namespace {

// ---- Stalls

enum StallColumn : std::size_t { kStallStart, kStallEnd, kStallTid, kStallName, kStallType };
const Columns kStallColumns{"start", "end", "globalTid", "nameId",
                                                        "overheadType"};

bool mentions(std::string_view text, std::string_view part) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return c == '_' ? ' ' : static_cast<char>(std::tolower(c));
  });
  return lower.find(part) != std::string::npos;
}

StallKind kind_of_stall(std::string_view name) {
  if (mentions(name, "command buffer full")) return StallKind::kQueueFull;
  if (mentions(name, "module load") || mentions(name, "function load") ||
      mentions(name, "driver compiler") || mentions(name, "jit")) {
    return StallKind::kModuleLoad;
  }
  return StallKind::kProfiler;
}

/// By what the table calls the type: its own name, else the list of names, else nothing.
class StallKinds {
 public:
  explicit StallKinds(NsysSession& session) : session_(session) {
    Rows rows(session.database, "ENUM_CUPTI_OVERHEAD_TYPE", {"id", "name", "label"});
    while (rows.next()) {
      const auto id = rows.integer(0);
      if (!id) continue;
      std::string names(rows.text(1).value_or(""));
      names += ' ';
      names += rows.text(2).value_or("");
      by_type_.try_emplace(*id, kind_of_stall(names));
    }
  }

  [[nodiscard]] StallKind kind(const Rows& rows) {
    const auto type = by_type_.find(rows.integer(kStallType).value_or(-1));
    if (type != by_type_.end()) return type->second;
    const auto id = rows.integer(kStallName);
    if (!id) return StallKind::kOther;
    const auto known = by_name_.find(*id);
    if (known != by_name_.end()) return known->second;
    const auto name = session_.strings.find(*id);
    const StallKind kind = name ? kind_of_stall(*name) : StallKind::kOther;
    by_name_.emplace(*id, kind);
    return kind;
  }

 private:
  NsysSession& session_;
  std::unordered_map<std::int64_t, StallKind> by_type_;
  std::unordered_map<std::int64_t, StallKind> by_name_;
};

// ---- Memory

enum MemoryColumn : std::size_t {
  kMemStart, kMemPid, kMemDevice, kMemBytes, kMemKind, kMemOperation
};
const Columns kMemoryColumns{
    "start", "globalPid", "deviceId", "bytes", "memKind", "memoryOperationType"};

/// ENUM_CUDA_MEM_KIND: device memory, also of variables.
bool on_device(std::optional<std::int64_t> kind) { return !kind || *kind == 2 || *kind == 5; }

struct Change {
  TraceTime at{};
  std::int64_t bytes = 0;  ///< below zero: freed
};

std::vector<MemorySample> totals(std::vector<Change>& changes) {
  std::ranges::stable_sort(changes, {}, &Change::at);
  std::vector<MemorySample> samples;
  std::int64_t total = 0;
  for (const Change& change : changes) {
    // What was allocated before the profile began may be freed in it.
    total = std::clamp<std::int64_t>(total + change.bytes, 0, kMaxTime);
    const auto bytes = static_cast<std::uint64_t>(total);
    samples.push_back({change.at, bytes, bytes});
  }
  return samples;
}

}  // namespace

void read_stalls(NsysSession& session, RankSet& set) {
  StallKinds kinds(session);
  for (const std::string_view table : {"CUPTI_ACTIVITY_KIND_OVERHEAD", "PROFILER_OVERHEAD"}) {
    session.each_row(table, kStallColumns, [&](const Rows& rows) {
      const auto span = session.span(rows.integer(kStallStart), rows.integer(kStallEnd));
      const auto tid = rows.integer(kStallTid);
      Process* owner = span && tid ? set.process(tid) : nullptr;
      if (owner == nullptr) return;
      // Only threads with calls can have one held; elsewhere it is the profiler's own business.
      for (const std::uint32_t rank : set.ranks_with_threads(*owner)) {
        const auto thread = set.ranks[rank].known_thread(thread_of(*tid));
        if (!thread) continue;
        set.ranks[rank].trace.stalls.push_back({span->start, span->duration, *thread,
                                                kinds.kind(rows)});
        break;
      }
    });
  }
}

void read_memory(NsysSession& session, RankSet& set) {
  std::vector<std::vector<Change>> changes(set.ranks.size());
  std::uint64_t skipped = 0;
  session.each_row("CUDA_GPU_MEMORY_USAGE_EVENTS", kMemoryColumns, [&](const Rows& rows) {
    const auto span = session.span(rows.integer(kMemStart), rows.integer(kMemStart));
    const std::int64_t device = rows.integer(kMemDevice).value_or(-1);
    const std::int64_t bytes = rows.integer(kMemBytes).value_or(-1);
    const bool usable = span && device >= 0 && device <= kMaxDevice && bytes >= 0 &&
                        bytes < (std::int64_t{1} << 50U) && on_device(rows.integer(kMemKind));
    NsysRankBuilder* rank =
        usable ? set.of_device(rows.integer(kMemPid), static_cast<std::uint32_t>(device))
               : nullptr;
    if (rank == nullptr || rank->device != static_cast<std::uint32_t>(device)) {
      ++skipped;
      return;
    }
    const bool frees = rows.integer(kMemOperation) == 1;
    changes[static_cast<std::size_t>(rank - set.ranks.data())].push_back(
        {span->start, frees ? -bytes : bytes});
  });
  session.count(kMemoryRows, skipped);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    set.ranks[i].trace.memory = totals(changes[i]);
  }
}

}  // namespace bubblesim::traces::nsys
