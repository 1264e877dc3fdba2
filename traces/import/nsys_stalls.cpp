// What held the threads of an export's processes, and how much memory they had.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/import/nsys_counters.hpp"
#include "traces/import/nsys_tables.hpp"

namespace bubblesim::traces::nsys {
namespace {

// ---- Stalls

enum StallColumn : std::size_t { kStallStart, kStallEnd, kStallTid, kStallName, kStallType };
constexpr std::array<std::string_view, 5> kStallColumns{"start", "end", "globalTid", "nameId",
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
    static constexpr std::array<std::string_view, 3> kColumns{"id", "name", "label"};
    Rows rows(session.database, "ENUM_CUPTI_OVERHEAD_TYPE", kColumns);
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
constexpr std::array<std::string_view, 6> kMemoryColumns{
    "start", "globalPid", "deviceId", "bytes", "memKind", "memoryOperationType"};

/// ENUM_CUDA_MEM_KIND: device memory, also of variables.
bool on_device(std::optional<std::int64_t> kind) { return !kind || *kind == 2 || *kind == 5; }

struct Change {
  TraceTime at{};
  std::int64_t bytes = 0;  ///< below zero: freed
};

std::vector<MemorySample> totals(std::vector<Change>& changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
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
    Rows rows(session.database, table, kStallColumns);
    while (rows.next()) {
      session.tick();
      const auto span = session.span(rows.integer(kStallStart), rows.integer(kStallEnd));
      const auto tid = rows.integer(kStallTid);
      Process* owner = span && tid ? set.process(tid) : nullptr;
      if (owner == nullptr) continue;
      // Only threads with calls can have one held; elsewhere it is the profiler's own business.
      for (const std::uint32_t rank : set.ranks_with_threads(*owner)) {
        const auto thread = set.ranks[rank].known_thread(thread_of(*tid));
        if (!thread) continue;
        set.ranks[rank].trace.stalls.push_back({span->start, span->duration, *thread,
                                                kinds.kind(rows)});
        break;
      }
    }
    session.finish(rows);
  }
}

void read_memory(NsysSession& session, RankSet& set) {
  std::vector<std::vector<Change>> changes(set.ranks.size());
  Rows rows(session.database, "CUDA_GPU_MEMORY_USAGE_EVENTS", kMemoryColumns);
  std::uint64_t skipped = 0;
  while (rows.next()) {
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
      continue;
    }
    const bool frees = rows.integer(kMemOperation) == 1;
    changes[static_cast<std::size_t>(rank - set.ranks.data())].push_back(
        {span->start, frees ? -bytes : bytes});
  }
  session.count(kMemoryRows, skipped);
  session.finish(rows);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    set.ranks[i].trace.memory = totals(changes[i]);
  }
}

}  // namespace bubblesim::traces::nsys
