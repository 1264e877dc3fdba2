// The state that all ranks of one export share during import: names, clock and counters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/import/nsys_database.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::nsys {

// The counters of everything that the import of Nsight Systems exports drops, repairs, infers or
// leaves out.

// Damage.
inline constexpr CounterSpec kTableDamaged{"nsys_tables_damaged", Severity::kLoss,
    "tables that could not be read to their end; the rows before the damage are kept"};
inline constexpr CounterSpec kBadRows{"nsys_rows_unreadable_dropped", Severity::kLoss,
    "rows without a usable time, GPU or stream: missing, of the wrong type, or beyond 36 years"};
inline constexpr CounterSpec kGzipDamaged{"nsys_gzip_damaged", Severity::kLoss,
    "the compressed file is cut or corrupt; what unpacked before that was read"};

// Times.
inline constexpr CounterSpec kNoBase{"nsys_session_start_unknown", Severity::kNotice,
    "1: no session start time; times count from the start of the profile, not from 1970"};
inline constexpr CounterSpec kZeroTime{"nsys_zero_timestamps_dropped", Severity::kLoss,
    "device operations with start = end = 0, by which CUPTI says that it has no time"};
inline constexpr CounterSpec kNegativeDuration{"nsys_negative_durations_clamped",
    Severity::kNotice, "durations below zero, set to zero"};

// Names.
inline constexpr CounterSpec kNameMissing{"nsys_names_missing", Severity::kNotice,
    "names that StringIds does not have"};
inline constexpr CounterSpec kInvalidUtf8{"nsys_names_not_utf8", Severity::kNotice,
    "names whose bytes are not UTF-8; the wrong bytes became U+FFFD"};

// Device operations.
inline constexpr CounterSpec kNoKernels{"nsys_kernels_not_in_export", Severity::kLoss,
    "1: neither CUPTI_ACTIVITY_KIND_KERNEL nor _GRAPH_TRACE has a row: all of the device's work is "
    "copies and memsets. If the job launched kernels, profile it with nsys profile --trace=cuda "
    "and export all tables with nsys export --type sqlite"};
inline constexpr CounterSpec kBadShape{"nsys_launch_shapes_missing", Severity::kNotice,
    "kernels without grid and block: what they take of the GPU is not known"};
inline constexpr CounterSpec kDuplicates{"nsys_duplicate_rows_dropped", Severity::kNotice,
    "device operations that the export has twice, with the same correlation, times, stream, name, "
    "shape and bytes; not among kernels of one graph"};
inline constexpr CounterSpec kGraphOps{"nsys_graphs_as_one_operation", Severity::kNotice,
    "CUDA graphs recorded as one span: taken as one kernel whose launch shape is not known; "
    "nsys profile --cuda-graph-trace=node records their kernels"};
inline constexpr CounterSpec kGraphsTwice{"nsys_graphs_with_kernels", Severity::kInfo,
    "spans of CUDA graphs whose kernels were recorded too; the span is left out"};
inline constexpr CounterSpec kDeviceUnknown{"nsys_device_not_described", Severity::kNotice,
    "ranks whose GPU has no row in TARGET_INFO_GPU"};

// Processes and GPUs.
inline constexpr CounterSpec kOtherDevices{"nsys_ops_on_devices_without_kernels",
    Severity::kNotice,
    "copies and memsets on a GPU where their process ran no kernel; kept with its main GPU"};
inline constexpr CounterSpec kOtherProcesses{"nsys_ops_of_processes_without_kernels_dropped",
    Severity::kLoss, "copies and memsets of processes that ran no kernel at all"};
inline constexpr CounterSpec kForeignCalls{"nsys_calls_of_processes_without_rank", Severity::kInfo,
    "calls of processes that ran no kernel"};
inline constexpr CounterSpec kSharedCalls{"nsys_calls_given_by_thread", Severity::kNotice,
    "calls of a process with several GPUs that name none; given to the GPU that their thread "
    "used last"};
inline constexpr CounterSpec kNoProcess{"nsys_process_not_recorded", Severity::kNotice,
    "device operations without a process; taken as one process"};
inline constexpr CounterSpec kFailedCalls{"nsys_calls_failed", Severity::kInfo,
    "calls that returned an error or 'not ready'"};

// Ranks.
inline constexpr CounterSpec kRankFromMpi{"nsys_ranks_from_mpi", Severity::kInfo,
    "ranks that MPI_RANKS gives"};
inline constexpr CounterSpec kRankFromNccl{"nsys_ranks_from_nccl", Severity::kNotice,
    "ranks taken from the largest NCCL communicator of each process"};
inline constexpr CounterSpec kRankFromEnvironment{"nsys_ranks_from_environment",
    Severity::kNotice, "ranks taken from the environment that nsys ran in (RANK, PMI_RANK, ...)"};
inline constexpr CounterSpec kRankFromName{"nsys_ranks_from_file_names", Severity::kNotice,
    "ranks taken from the names of files"};
inline constexpr CounterSpec kRankFromOrder{"nsys_ranks_from_order", Severity::kNotice,
    "ranks that nothing names; numbered by file, process and GPU"};

// Synchronisation.
inline constexpr CounterSpec kSyncRows{"nsys_sync_rows", Severity::kInfo,
    "synchronisation and event rows; they name the streams and events of calls"};

// NVTX.
inline constexpr CounterSpec kOpenRanges{"nsys_nvtx_ranges_open_dropped", Severity::kNotice,
    "NVTX ranges that were not closed before the profile ended"};
inline constexpr CounterSpec kOtherNvtx{"nsys_nvtx_rows_skipped", Severity::kInfo,
    "NVTX domains, categories and names of threads"};
inline constexpr CounterSpec kBadPayload{"nsys_nccl_payloads_unreadable", Severity::kNotice,
    "NCCL ranges whose payload cannot be read, or has numbers that no job has (ranks, bytes); the "
    "kernel's name gives the kind alone"};
inline constexpr CounterSpec kScatterBytes{"nsys_reduce_scatters_without_size", Severity::kNotice,
    "reduce-scatters whose communicator's size is unknown: NCCL names the bytes of one rank's "
    "result, the input's are not recorded"};

// Memory.
inline constexpr CounterSpec kMemoryRows{"nsys_memory_rows_skipped", Severity::kInfo,
    "allocations on a GPU of no rank, or of host memory"};

/// Times and durations beyond this (36 years) count as damage; times since 1970 beyond twice this.
inline constexpr std::int64_t kMaxTime = std::int64_t{1} << 60U;

/// Nsight Systems packs machine, virtual machine, process and thread into one global id. Its lowest
/// 24 bits are the thread; they are zero in the id of a process.
[[nodiscard]] constexpr std::int64_t process_of(std::int64_t global_id) {
  return global_id & ~std::int64_t{0xFFFFFF};
}
[[nodiscard]] constexpr std::int64_t thread_of(std::int64_t global_id) {
  return global_id & 0xFFFFFF;
}
/// The operating system's number of a process.
[[nodiscard]] constexpr std::int64_t system_process(std::int64_t global_id) {
  return global_id >> 24U & 0xFFFFFF;
}

struct RowSpan {
  TraceTime start{};
  Duration duration{};
};

/// The table StringIds.
class Strings {
 public:
  explicit Strings(const Database& database);
  [[nodiscard]] std::optional<std::string> find(std::int64_t id);

 private:
  bool keyed_;   ///< true: each string is looked up in the file; false: all_ has all of them
  Rows lookup_;
  std::unordered_map<std::int64_t, std::string> all_;
};

class NsysSession {
 public:
  NsysSession(const Database& opened, const ProgressCallback& progress);

  const Database& database;
  CounterSet counters;
  Strings strings;
  std::string product;  ///< writer of the export, with version; empty: not recorded

  /// The span from `start` to `end`; nothing if they are unusable. Counts negative durations.
  [[nodiscard]] std::optional<RowSpan> span(std::optional<std::int64_t> start,
                                            std::optional<std::int64_t> end);
  /// The text with bytes that are not UTF-8 replaced; counts such texts.
  [[nodiscard]] std::string clean(std::string_view text);
  /// The string of this id; if StringIds lacks it, "unnamed", and a count.
  [[nodiscard]] std::string name(std::optional<std::int64_t> id);

  void count(const CounterSpec& spec, std::uint64_t n = 1) {
    counters.add(spec, n);
  }
  /// Calls visit(rows) for the first `limit` rows of a table, and reports progress now and then;
  /// counts a table that is damaged.
  template <class Visit>
  void each_row(std::string_view table, Columns columns, Visit visit,
                std::uint64_t limit = UINT64_MAX) {
    Rows rows(database, table, columns);
    for (; limit > 0 && rows.next(); --limit) {
      if (++rows_ % 65536 == 0) report();
      visit(std::as_const(rows));
    }
    if (rows.damaged()) count(kTableDamaged);
  }

  /// Its times count from 1970.
  [[nodiscard]] bool is_absolute() const { return since_1970_ || base_ns_ > 0; }

 private:
  void report();
  void read_base();
  void read_product();

  const ProgressCallback& progress_;
  std::uint64_t rows_ = 0;
  std::uint64_t rows_total_ = 0;
  std::int64_t base_ns_ = 0;  ///< 0: not known, or in the times
  bool since_1970_ = false;   ///< the times count so
};

// Decides which processes and GPUs are ranks (those that ran kernels), and assigns each row of the
// export to a rank.

/// The largest CUDA device ordinal accepted; a row with a larger one is damaged.
inline constexpr std::int64_t kMaxDevice = 1 << 16U;
/// The most bytes of a copy, a memset or a collective; a larger record is damaged.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 50U;
/// The most pairs of process and GPU with kernels in one export; more is a fault.
inline constexpr std::size_t kMaxRanks = 4096;
/// The most GPUs of a process whose threads are found by name; no machine has more.
inline constexpr std::size_t kMaxGpus = 64;

/// One rank during import: its records are neither sorted nor joined.
class NsysRankBuilder {
 public:
  NsysRankBuilder(std::int64_t process_id, std::uint32_t device_id)
      : process(process_id), device(device_id) {}

  std::int64_t process;
  std::uint32_t device;
  RankTrace trace;

  /// `device_of`: the stream's device in the row. Stream ids are unique in a context.
  [[nodiscard]] StreamId stream(std::uint32_t device_of, std::int64_t context, std::int64_t id);
  [[nodiscard]] ThreadId thread(std::int64_t thread_id);
  [[nodiscard]] std::optional<ThreadId> known_thread(std::int64_t thread_id) const;
  /// The name of a device operation or range.
  [[nodiscard]] NameId name(NsysSession& session, std::optional<std::int64_t> id);
  struct Call {
    NameId name{};
    HostCallKind kind = HostCallKind::kOther;
  };
  /// The name of a call, without Nsight Systems' version suffix.
  [[nodiscard]] Call call(NsysSession& session, std::optional<std::int64_t> id);

  using StreamKey = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;
  [[nodiscard]] const std::map<StreamKey, StreamId>& streams() const { return streams_; }

 private:
  std::map<StreamKey, StreamId> streams_;
  std::unordered_map<std::int64_t, ThreadId> threads_;
  std::unordered_map<std::int64_t, NameId> names_;
  std::unordered_map<std::int64_t, Call> calls_;
};

/// A process with its ranks, one for each GPU.
struct Process {
  std::int64_t id = 0;
  std::vector<std::uint32_t> ranks;  ///< in order of device
  std::uint32_t main = 0;            ///< the rank with most kernels
  /// The rank of each correlation, for processes with several GPUs.
  std::unordered_map<std::uint64_t, std::uint32_t> rank_of_correlation;
  /// The device of each context, from the rows of device operations; kNone: they disagree.
  std::map<std::int64_t, std::uint32_t> device_of_context;
};

class RankSet {
 public:
  /// Counts the device operations of every process and GPU. Fault: more than kMaxRanks.
  [[nodiscard]] static Result<RankSet> survey(NsysSession& session);

  std::vector<NsysRankBuilder> ranks;  ///< by process, then device

  /// Nothing: the process ran no kernel.
  [[nodiscard]] Process* process(std::optional<std::int64_t> global_id);
  /// The rank of a device operation: its GPU's, else the main one of its process.
  [[nodiscard]] NsysRankBuilder* of_device(std::optional<std::int64_t> global_pid,
                                       std::uint32_t device);
  /// The ranks whose threads a row of the process may name: the first kMaxGpus, normally all.
  [[nodiscard]] std::span<const std::uint32_t> ranks_with_threads(const Process& owner) const {
    return std::span(owner.ranks).first(std::min(owner.ranks.size(), kMaxGpus));
  }
  [[nodiscard]] std::vector<Process>& processes() { return processes_; }

 private:
  std::vector<Process> processes_;  ///< by id
};

}  // namespace bubblesim::traces::nsys
