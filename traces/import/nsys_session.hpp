// What holds for all ranks of one export while it is read: its names, its clock, its counts.
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
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/import/nsys_database.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::nsys {

/// Times and durations beyond this (36 years) are no times.
inline constexpr std::int64_t kMaxTime = std::int64_t{1} << 60U;

/// Nsight Systems packs machine, virtual machine, process and thread into one number, the lowest
/// 24 bits the thread; of a process's number they are zero.
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
  bool keyed_;   ///< found in the file one by one; else all are held
  Rows lookup_;
  std::unordered_map<std::int64_t, std::string> all_;
};

class NsysSession {
 public:
  NsysSession(const Database& opened, const ProgressCallback& progress);

  const Database& database;
  CounterSet counters;
  Strings strings;
  std::string product;  ///< what wrote the export, with version; empty: not recorded

  /// The span of a row's times; nothing if they are none. Counts durations below zero.
  [[nodiscard]] std::optional<RowSpan> span(std::optional<std::int64_t> start,
                                            std::optional<std::int64_t> end);
  /// The text as UTF-8; counts what is not.
  [[nodiscard]] std::string clean(std::string_view text);
  /// "unnamed" and a count where StringIds lacks it.
  [[nodiscard]] std::string name(std::optional<std::int64_t> id);

  void count(const CounterSpec& spec, std::uint64_t n = 1) {
    counters.add(spec, n);
  }
  /// Every table's end comes here; a table read halfway is counted.
  void finish(const Rows& rows);
  /// A row was read.
  void tick() {
    if (++rows_ % 65536 == 0) report();
  }

 private:
  void report();
  void read_base();
  void read_product();

  const ProgressCallback& progress_;
  std::uint64_t rows_ = 0;
  std::uint64_t rows_total_ = 0;
  std::int64_t base_ns_ = 0;
};

// Decides which processes and GPUs are ranks (those that ran kernels), and to which rank each row
// of the export belongs.

/// The largest CUDA device ordinal that is believed; a row with a larger one is damaged.
inline constexpr std::int64_t kMaxDevice = 1 << 16U;
/// What a copy, a memset or a collective may have moved; records of more bytes are damaged.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 50U;
/// Processes and GPUs with kernels in one export; more is no export.
inline constexpr std::size_t kMaxRanks = 4096;
/// GPUs of one process whose threads are looked up by name; no machine has more.
inline constexpr std::size_t kMaxGpus = 64;

/// One rank as it is read: records unsorted and unjoined.
class NsysRankBuilder {
 public:
  NsysRankBuilder(std::int64_t process_id, std::uint32_t device_id)
      : process(process_id), device(device_id) {}

  std::int64_t process;
  std::uint32_t device;
  RankTrace trace;

  /// `device_of`: where the row says the stream is; numbers of streams are unique in a context.
  [[nodiscard]] StreamId stream(std::uint32_t device_of, std::int64_t context, std::int64_t id);
  [[nodiscard]] ThreadId thread(std::int64_t thread_id);
  [[nodiscard]] std::optional<ThreadId> known_thread(std::int64_t thread_id) const;
  /// The name of a device operation or range.
  [[nodiscard]] NameId name(NsysSession& session, std::optional<std::int64_t> id);
  struct Call {
    NameId name{};
    HostCallKind kind = HostCallKind::kOther;
  };
  /// The name of a call, without the version that Nsight Systems puts after it.
  [[nodiscard]] Call call(NsysSession& session, std::optional<std::int64_t> id);

  using StreamKey = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;
  [[nodiscard]] const std::map<StreamKey, StreamId>& streams() const { return streams_; }

 private:
  std::map<StreamKey, StreamId> streams_;
  std::unordered_map<std::int64_t, ThreadId> threads_;
  std::unordered_map<std::int64_t, NameId> names_;
  std::unordered_map<std::int64_t, Call> calls_;
};

/// A process with its ranks: one a GPU.
struct Process {
  std::int64_t id = 0;
  std::vector<std::uint32_t> ranks;  ///< by device
  std::uint32_t main = 0;            ///< the rank of most kernels
  /// The rank that a correlation belongs to, for processes with several GPUs.
  std::unordered_map<std::uint64_t, std::uint32_t> rank_of_correlation;
  /// The device of each context, as device operations name it; kNone: they name several.
  std::map<std::int64_t, std::uint32_t> device_of_context;
};

class RankSet {
 public:
  /// Counts the device operations of every process and GPU. Fault: more than kMaxRanks.
  [[nodiscard]] static Result<RankSet> survey(NsysSession& session);

  std::vector<NsysRankBuilder> ranks;  ///< by process, then device

  /// Nothing: the process ran no kernel.
  [[nodiscard]] Process* process(std::optional<std::int64_t> global_id);
  /// The rank that a device operation belongs to: its GPU's, else the main one of its process.
  [[nodiscard]] NsysRankBuilder* of_device(std::optional<std::int64_t> global_pid,
                                       std::uint32_t device);
  /// The ranks whose threads a row of the process may name: all, of any real process.
  [[nodiscard]] std::span<const std::uint32_t> ranks_with_threads(const Process& owner) const {
    return std::span(owner.ranks).first(std::min(owner.ranks.size(), kMaxGpus));
  }
  [[nodiscard]] std::vector<Process>& processes() { return processes_; }

 private:
  std::vector<Process> processes_;  ///< by id
};

}  // namespace bubblesim::traces::nsys
