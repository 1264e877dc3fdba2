// What host libraries tell the recorder from any thread of the job: NVTX ranges, collectives.
//
// Times are on CUPTI's clock (nanoseconds, the base of CLOCK_REALTIME), from host_now().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "capture/record/host/bounded_queue.hpp"
#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

/// A named span that ended, or an instant (duration 0).
struct RangeEvent {
  TraceTime start{};
  Duration duration{};
  std::uint64_t thread = 0;  ///< gettid()
  std::string domain;        ///< empty: NVTX's default domain
  std::string name;
};

/// A collective as its library announced it.
struct CollectiveEvent {
  TraceTime start{};
  Duration duration{};
  std::uint64_t thread = 0;
  traces::CollectiveSource source = traces::CollectiveSource::kNcclProfiler;
  traces::CollectiveKind kind = traces::CollectiveKind::kUnknown;
  std::uint64_t bytes = 0;  ///< of this rank's input; 0: not recorded
  std::string group;        ///< a name that all of its ranks share; empty: not recorded
  std::uint32_t group_size = 0;
  std::vector<std::uint32_t> peers;  ///< as traces::Collective's
  std::uint64_t sequence = 0;
  bool sequence_recorded = false;
  std::uint32_t place = 0;  ///< as traces::Collective's
  bool leads = false;  ///< numbered, of the communicator of most ranks
  std::uint64_t graph_node = 0;  ///< of its kernel, where that was captured into a graph
};

/// A node of a graph that has a collective was copied.
struct NodeCopyEvent {
  std::uint64_t node = 0;
  std::uint64_t copy_of = 0;
};

/// The user's mark, through the control socket or an NVTX mark.
struct MarkEvent {
  TraceTime at{};
  std::uint64_t thread = 0;
  std::string name;
};

/// A stream waits for a value in memory, or writes one.
struct StreamValueEvent {
  traces::SyncRecord sync;  ///< without stream and device: CUPTI's numbers below name them
  std::uint32_t context = 0, number = 0;
};

using HostEvent =
    std::variant<RangeEvent, CollectiveEvent, MarkEvent, NodeCopyEvent, StreamValueEvent>;

/// Is a session recording? Cheap: one relaxed load. Callers do nothing else while it is false.
[[nodiscard]] bool host_recording() noexcept;
/// The present on CUPTI's clock. Only meaningful while recording.
[[nodiscard]] TraceTime host_now() noexcept;
/// Hands an event to the session's writer. Never blocks for long, never throws; when the queue is
/// full or memory is short the event is dropped and counted. Ignored while nothing records.
void emit_host_event(HostEvent&& event) noexcept;
/// gettid(), cached by thread.
[[nodiscard]] std::uint64_t host_thread_id() noexcept;

/// Called after a fork: the ids that threads have cached are the parent's. Async-signal-safe.
void forget_host_threads() noexcept;

/// The calling thread captures a collective into a graph. The collective, and those captured before
/// it on its communicator, belong to the next kernel that the thread puts into a graph.
void await_graph_node(CollectiveEvent&& event) noexcept;
/// As BufferOwner::graph_node().
void tell_graph_node(std::uint64_t node, std::uint64_t copy_of) noexcept;

// Events of the job's threads on their way to the writer: bounded in number and in bytes.

/// The most bytes kept of a name or a group, and the most peers: they bound a full queue.
inline constexpr std::size_t kMaxEventText = 512;
inline constexpr std::size_t kMaxEventPeers = 4096;

/// Many producers, one consumer. No call blocks or throws.
class HostEventQueue {
 public:
  explicit HostEventQueue(std::size_t length) : events_(length) {}

  /// Full: the event is dropped and counted.
  void push(HostEvent&& event) noexcept;
  [[nodiscard]] bool pop(HostEvent& event) noexcept { return events_.pop(event); }
  [[nodiscard]] std::size_t size() const { return events_.size(); }

  /// Events dropped since the last call.
  [[nodiscard]] std::uint64_t take_dropped() noexcept { return dropped_.exchange(0); }
  /// Events that were cut to kMaxEventText or kMaxEventPeers since the last call.
  [[nodiscard]] std::uint64_t take_cut() noexcept { return cut_.exchange(0); }

 private:
  BoundedQueue<HostEvent> events_;
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> cut_{0};
};

}  // namespace bubblesim::capture
