// The records of one rank of a job, in recorded time, without anything about replay.
//
// Times are nanoseconds of the rank's own clock until `align_ranks` (traces/align.hpp) has moved
// them onto the clock of the job's first rank. Names and launch shapes are interned.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "traces/intern.hpp"

namespace bubblesim::traces {

/// The effect of a host call on the device or its thread.
enum class HostCallKind : std::uint8_t {
  kLaunchKernel,      ///< one kernel
  kLaunchGraph,       ///< a CUDA graph: many device operations, one correlation
  kCopy,              ///< cudaMemcpy*; blocks the thread when `blocking`
  kMemset,            ///< cudaMemset*
  kStreamSync,        ///< waits until a stream is empty
  kDeviceSync,        ///< waits until the device is empty
  kEventSync,         ///< waits until an event is reached
  kEventRecord,       ///< puts an event on a stream
  kStreamWaitEvent,   ///< makes a stream wait for an event
  kEventQuery,        ///< a query, which never waits
  kAlloc,             ///< cudaMalloc*, cuMemAlloc*, cuMemCreate, cuMemMap
  kFree,              ///< cudaFree*: waits for the device
  kOther,             ///< queries, attributes: takes time, has no effect
};

/// Whether it launches a kernel, a graph, a copy or a memset.
[[nodiscard]] constexpr bool is_launch(HostCallKind kind) {
  return kind == HostCallKind::kLaunchKernel || kind == HostCallKind::kLaunchGraph ||
         kind == HostCallKind::kCopy || kind == HostCallKind::kMemset;
}

/// Whether it does nothing but wait for the device, or a part of its work.
[[nodiscard]] constexpr bool is_synchronisation(HostCallKind kind) {
  return kind == HostCallKind::kStreamSync || kind == HostCallKind::kDeviceSync ||
         kind == HostCallKind::kEventSync;
}

enum class DeviceOpKind : std::uint8_t { kKernel, kCopy, kMemset, kCollective };

enum class CopyDirection : std::uint8_t { kNone, kHostToDevice, kDeviceToHost, kDeviceToDevice,
                                          kPeerToPeer, kHostToHost };

enum class CollectiveKind : std::uint8_t { kUnknown, kAllReduce, kAllGather, kReduceScatter,
                                           kBroadcast, kReduce, kAllToAll, kSend, kRecv,
                                           kSendRecv, kBarrier };

enum class MarkerKind : std::uint8_t { kIteration, kPhase, kMicroBatch, kUser };

/// No index: the field does not apply or is not known.
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// A kernel's launch shape. Equal shapes are stored once.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint16_t registers_per_thread = 0;  ///< 0: not recorded
  std::uint32_t shared_memory_bytes = 0;   ///< static plus dynamic, a block

  [[nodiscard]] std::uint64_t blocks() const {
    return std::uint64_t{grid[0]} * grid[1] * grid[2];
  }
  [[nodiscard]] std::uint64_t threads_per_block() const {
    return std::uint64_t{block[0]} * block[1] * block[2];
  }
  friend auto operator<=>(const LaunchShape&, const LaunchShape&) = default;
};

/// The greatest difference of host and device clocks in a recording: a wait may seem to return
/// before its operation has ended.
inline constexpr Duration kClockError = std::chrono::microseconds(20);

/// A call of the CUDA runtime or driver on a host thread.
struct HostCall {
  TraceTime start{};
  Duration duration{};
  std::uint64_t correlation = 0;  ///< 0: none. Unique per call within the rank.
  NameId name{};
  ThreadId thread{};
  HostCallKind kind = HostCallKind::kOther;
  std::uint32_t stream = kNone;  ///< index into streams, if the record names one
  std::uint64_t event = 0;       ///< CUDA event of record/wait/sync calls; 0: not recorded

  [[nodiscard]] TraceTime end() const { return start + duration; }
};

/// Work on the device.
struct DeviceOp {
  TraceTime start{};
  Duration duration{};
  std::uint64_t correlation = 0;
  NameId name{};
  StreamId stream{};
  DeviceOpKind kind = DeviceOpKind::kKernel;
  CopyDirection direction = CopyDirection::kNone;
  ShapeId shape{};                   ///< kernels and collectives
  std::uint64_t bytes = 0;           ///< copies and memsets; 0: not recorded
  std::uint32_t collective = kNone;  ///< index into collectives
  std::uint32_t launch = kNone;      ///< index into host_calls; kNone: launched outside the trace

  [[nodiscard]] TraceTime end() const { return start + duration; }
};

/// The description of one collective kernel.
struct Collective {
  CollectiveKind kind = CollectiveKind::kUnknown;
  std::uint64_t bytes = 0;              ///< of this rank's input; 0: not recorded
  NameId group{};                       ///< process-group name; empty string: not recorded
  std::uint32_t group_size = 0;         ///< 0: not recorded
  /// Ranks of the job, or of the group if `place` is known. If the rank itself is included: the
  /// ranks of the group; else the partners of a send or a receive. Empty: not known.
  std::vector<std::uint32_t> peers;
  std::uint64_t sequence = 0;           ///< within group; assigned by order if not recorded
  bool sequence_recorded = false;
  std::uint32_t place = 0;  ///< this rank's in the group, plus 1; 0: `peers` are ranks of the job
};

/// Device operation `after` may start only when `before` has finished.
struct Edge {
  DeviceOpId before{};
  DeviceOpId after{};
  bool inferred = false;  ///< from a record/wait pair whose streams were not recorded
};

/// A named span on a host thread: an iteration, a phase, a micro-batch, a user's range.
struct Marker {
  TraceTime start{};
  Duration duration{};
  NameId name{};
  ThreadId thread{};
  MarkerKind kind = MarkerKind::kUser;
  std::int64_t number = -1;  ///< iteration or micro-batch number; -1: none
};

struct MemorySample {
  TraceTime at{};
  std::uint64_t allocated_bytes = 0;
  std::uint64_t reserved_bytes = 0;
};

/// Why a host thread was held, other than by its program or by device work.
enum class StallKind : std::uint8_t {
  kQueueFull,   ///< the launch queue was full: the driver held the thread
  kProfiler,    ///< the profiler's own work on the thread: buffers, instrumentation
  kModuleLoad,  ///< code was loaded at a first launch
  kOther,
};

/// A span in which a launch call of a host thread was held.
struct HostStall {
  TraceTime start{};
  Duration duration{};
  ThreadId thread{};
  StallKind kind = StallKind::kOther;
};

/// The trace's clock beside the host's, at one instant.
struct ClockPair {
  TraceTime at{};
  std::int64_t realtime_ns = 0;   ///< CLOCK_REALTIME
  std::int64_t monotonic_ns = 0;  ///< CLOCK_MONOTONIC
};

/// The driver's record of an event record, a wait or a synchronisation, separate from the call.
/// Exists only until traces/join has put it on its call.
struct SyncRecord {
  TraceTime at{};
  std::uint64_t correlation = 0;              ///< correlation of the call
  HostCallKind kind = HostCallKind::kOther;   ///< kEventRecord, kStreamWaitEvent, k...Sync
  std::uint32_t stream = kNone;               ///< stream of the call; index into streams
  std::uint64_t event = 0;  ///< unique to a record (old drivers: to an event); 0: not recorded
  std::uint32_t device = 0;  ///< CUDA's number of the context's GPU, plus 1; 0: not recorded
};

/// The source of a collective's description.
enum class CollectiveSource : std::uint8_t {
  kNcclProfiler,  ///< NCCL's profiler plug-in
  kNvtx,          ///< the payload of NCCL's own NVTX ranges
  kStandIn,       ///< the stand-in of a process group (capture/torch)
};

/// A collective as its library announced it on a host thread, before the launch of its kernel.
/// Only in recordings that were not joined yet.
struct CollectiveNote {
  TraceTime start{};
  Duration duration{};           ///< of the announcing call; 0: an instant
  ThreadId thread{};
  CollectiveSource source = CollectiveSource::kNcclProfiler;
  std::uint32_t collective = kNone;  ///< index into collectives
};

struct HostThread {
  std::uint64_t system_id = 0;  ///< the profiler's number for it
  std::string name;
};

/// The order of a stream relative to the legacy default stream of its device. Numbered as CUPTI's
/// CUPTI_ACTIVITY_STREAM_CREATE_FLAG_*, which Nsight Systems exports.
enum class StreamKind : std::uint8_t {
  kUnknown,
  kBlocking,       ///< its operations and the default stream's run in the order of their launches
  kNonBlocking,    ///< not ordered with the default stream
  kLegacyDefault,  ///< the default stream itself, number 0
};
[[nodiscard]] constexpr StreamKind stream_kind(std::uint64_t cupti_flag) {
  return cupti_flag <= 3 ? static_cast<StreamKind>(cupti_flag) : StreamKind::kUnknown;
}

struct Stream {
  std::uint64_t system_id = 0;
  std::int32_t priority = 0;  ///< CUDA's: lower is more urgent
  std::uint32_t device = 0;   ///< CUDA's number of the GPU in its process
  StreamKind kind = StreamKind::kUnknown;
};

/// The rank's GPU, as far as the profiler recorded it; 0: not recorded.
struct DeviceInfo {
  std::string name;
  std::uint32_t sm_count = 0;
  std::uint32_t compute_major = 0;
  std::uint32_t compute_minor = 0;
  std::uint64_t memory_bytes = 0;
};

/// The origin of the trace.
struct Provenance {
  std::string source;      ///< file name, without its folder
  std::string format;      ///< "kineto", "nsys", "bubblesim-synth", ...
  std::string tool;        ///< the writer, with version
  std::string note;
};

/// One rank's timeline. Calls and operations are sorted by start, ties by launch, if known.
struct RankTrace {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  /// Ranks of one process, one for each GPU, have the same number, and a thread's calls for several
  /// of them are in order (HostThread::system_id); 0: a process of its own.
  std::uint32_t process = 0;
  DeviceInfo device;
  StringTable names;
  ShapeTable<LaunchShape> shapes;
  std::vector<HostThread> threads;
  std::vector<Stream> streams;
  std::vector<HostCall> host_calls;
  std::vector<DeviceOp> device_ops;
  std::vector<Edge> edges;
  std::vector<Collective> collectives;
  std::vector<Marker> markers;
  std::vector<MemorySample> memory;
  std::vector<HostStall> stalls;
  std::vector<ClockPair> clocks;
  std::vector<SyncRecord> syncs;            ///< empty once joined
  std::vector<CollectiveNote> notes;        ///< empty once joined
  Provenance provenance;
  CounterSet counters;
};

/// A job: one trace for each rank, ordered by rank.
struct JobTrace {
  std::vector<RankTrace> ranks;
};

}  // namespace bubblesim::traces
