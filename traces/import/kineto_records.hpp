// The records of one Kineto file's events, before they are sorted and joined.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/import/json_fields.hpp"
#include "traces/import/kernel_args.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

// One element of `traceEvents` as views of its fields; only the category is interpreted. Valid as
// long as the window's text.

/// An event's category as the importer treats it; versions of Kineto spell it differently.
enum class KinetoCategory : std::uint8_t {
  kMissing,          ///< no "cat": metadata, old instant events
  kKernel,
  kCopy,
  kMemset,
  kHostCall,         ///< runtime or driver
  kSync,             ///< synthetic rows of stream waits and synchronisations
  kUserAnnotation,
  kInstant,          ///< cpu_instant_event: memory samples
  kCpuOp,
  kPythonFunction,
  kFlow,             ///< ac2g, async_cpu_to_gpu, async_gpu, fwdbwd
  kGpuAnnotation,    ///< gpu_user_annotation: the host's range drawn on a stream
  kTraceSpan,        ///< "Trace": the profiler's own span
  kOverhead,         ///< time in which a thread was held; all but a full launch queue are the
                     ///< profiler's own
  kProfilerInternal, ///< cuda_event and other rows that replay does not need
  kForeign,          ///< not a category of Kineto's
};

/// The name of the overhead event that is a stall of the host.
inline constexpr std::string_view kQueueFullEvent = "Command Buffer Full";

/// The operator that describes a collective. It runs around the collective's launch or, for a batch
/// of sends and receives, before it. Only in the first case do kernels have its arguments.
inline constexpr std::string_view kCommunicationOperator = "record_param_comms";

/// Whether the profiler itself marks an iteration by this range.
[[nodiscard]] inline bool is_profiler_step(std::string_view name) {
  return name.starts_with("ProfilerStep");
}

struct RawEvent {
  char phase = 0;  ///< 'X', 'i', 'M', ...; 0: missing
  KinetoCategory category = KinetoCategory::kMissing;
  std::string_view category_text;
  std::string_view name;  ///< with its escapes unresolved
  JsonValue pid, tid, ts, dur, args;
  bool repeats = false;  ///< a key of the event occurs twice; keys inside args are not compared
  StringRule rule = StringRule::kStrict;  ///< the rule for the event's fields and for args
};

enum class EventStatus {
  kUsed,     ///< all fields are read
  kSkipped,  ///< not stored; read only as far as needed to know that
  kDamaged,
};

struct EventRead {
  EventStatus status = EventStatus::kDamaged;
  std::size_t length = 0;  ///< of the object; not known with kSkipped
};

/// Reads the event that starts at `text[0]`.
[[nodiscard]] EventRead read_event(std::string_view text, StringRule rule, RawEvent& event);

// Records with what is needed of them until they are joined.

struct PendingCall : HostCall {
  std::optional<std::uint64_t> stream_pointer;  ///< AMD writes hipStream_t
  std::optional<ShapeId> shape;  ///< AMD writes a launch's; its kernel may have none
};

struct PendingOp : DeviceOp {
  std::uint64_t graph_node = 0;
};

/// One end of a send or a receive. A field is empty if the file does not give it.
struct TransferEnd {
  CollectiveKind kind = CollectiveKind::kUnknown;
  std::optional<std::uint32_t> own;           ///< this rank, by its place in the group
  std::optional<std::uint32_t> partner;       ///< the other end, by its place in the group
  std::optional<std::uint32_t> partner_rank;  ///< the other end, by its rank in the job
};

struct PendingCollective {
  Collective record;
  bool recorded = false;      ///< the kernel has its collective's arguments
  bool ranks_cut = false;     ///< the list of ranks was truncated
  std::vector<TransferEnd> ends;  ///< the sends and receives of the kernel
};

/// A send or a receive that the host announced: by PyTorch's operator or by its range.
struct AnnouncedTransfer {
  TraceTime start{};
  Duration duration{};
  ThreadId thread{};
  PendingCollective what;  ///< has one end

  [[nodiscard]] TraceTime end() const { return start + duration; }
};

/// A row of category cuda_sync. -1: not known, as in the file.
struct SyncRow {
  enum class Kind : std::uint8_t { kStreamWait, kEvent, kStream, kOther };
  Kind kind = Kind::kOther;
  std::uint32_t device = 0;
  std::uint64_t correlation = 0;
  TraceTime at{};
  std::int64_t stream = -1;
  std::int64_t waits_for_stream = -1;
  std::int64_t record_correlation = -1;
  std::int64_t event = -1;
};

struct KinetoRecords {
  RankTrace trace;  ///< names, shapes, threads, streams, markers, memory, counters
  std::vector<PendingCall> calls;
  std::vector<PendingOp> ops;
  std::vector<PendingCollective> collectives;
  std::vector<AnnouncedTransfer> announced;  ///< by operators
  std::vector<SyncRow> syncs;
  std::map<std::string, std::string, std::less<>> thread_names;  ///< by thread key
  std::map<std::string, ThreadId, std::less<>> thread_ids;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> stream_ids;
  std::array<std::uint64_t, 16> category_counts{};  ///< number of events by KinetoCategory
  std::map<std::string, std::uint64_t, std::less<>> foreign_categories;
  bool any_fraction = false;  ///< at least one time has digits below 1 us

  [[nodiscard]] std::uint64_t& count(KinetoCategory category) {
    return category_counts[static_cast<std::size_t>(category)];
  }
};

/// Interprets events and adds them to the records. One object for each file.
class KinetoRecorder {
 public:
  KinetoRecorder();
  void add(const RawEvent& event, EventStatus status);
  /// The records; the recorder is spent.
  [[nodiscard]] KinetoRecords take() { return std::move(records_); }

 private:
  struct Span {
    TraceTime start{};
    Duration duration{};
  };
  /// False, and counted: the event has no usable time.
  [[nodiscard]] bool read_span(const RawEvent& event, Span& span);
  [[nodiscard]] bool read_instant(const JsonValue& value, TraceTime& at);
  void add_device_op(const RawEvent& event);
  void add_host_call(const RawEvent& event);
  void add_sync(const RawEvent& event);
  void add_marker(const RawEvent& event);
  void add_announced(const RawEvent& event);
  void add_stall(const RawEvent& event);
  void add_memory(const RawEvent& event);
  void add_thread_name(const RawEvent& event);
  void add_skipped(const RawEvent& event);
  void add_other_phase(const RawEvent& event);
  void count_without_category(const RawEvent& event);

  /// This function and device_op_args() count arguments that occur twice.
  template <class Take>
  void each_argument(const RawEvent& event, Take take);
  [[nodiscard]] DeviceOpArgs device_op_args(const RawEvent& event);

  [[nodiscard]] NameId intern(std::string_view raw_name);
  [[nodiscard]] HostCallKind call_kind(NameId name);
  [[nodiscard]] bool is_communication(NameId name);
  [[nodiscard]] ThreadId thread(const JsonValue& pid, const JsonValue& tid);
  [[nodiscard]] StreamId stream(std::uint32_t device, std::uint64_t system_id,
                                std::int32_t priority);

  KinetoRecords records_;
  std::vector<std::int8_t> kind_by_name_;  ///< HostCallKind; -1: not looked up yet
  std::vector<std::int8_t> comm_by_name_;  ///< 0, 1; -1: not looked up yet
  std::string thread_key_;
  std::string last_thread_key_;
  ThreadId last_thread_{};
};

}  // namespace bubblesim::traces
