// Recordings made by hand, for tests. All times are whole microseconds, so that every sum in a
// test can be done in the head; records may be added in any order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/sort_records.hpp"
#include "traces/trace.hpp"

namespace bubblesim::workload {

/// A device operation and the call that launched it: {called, returned, start, end, stream}.
struct Launched {
  std::int64_t called = 0;    ///< the call's start
  std::int64_t returned = 0;  ///< the call's end; at least `called`
  std::int64_t start = 0;     ///< of the operation
  std::int64_t end = 0;
  std::uint32_t stream = 0;
  std::uint32_t thread = 0;
  std::string_view name = "gemm";
  std::string_view call{};    ///< its name
  traces::CopyDirection direction = traces::CopyDirection::kNone;
};

struct CollectiveAs {
  traces::CollectiveKind kind = traces::CollectiveKind::kAllReduce;
  std::optional<std::uint64_t> sequence{};  ///< nothing: not recorded
  std::vector<std::uint32_t> peers{};
  std::string_view group = "world";
  std::uint32_t group_size = 0;
};

/// A call that launches nothing.
struct Called {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint32_t thread = 0;
  std::uint32_t stream = traces::kNone;  ///< nothing: not recorded
  std::uint64_t event = 0;               ///< 0: not recorded
};

class TraceBuilder {
 public:
  explicit TraceBuilder(std::uint32_t rank = 0, std::uint32_t threads = 1,
                        std::uint32_t streams = 1) {
    trace_.rank = rank;
    trace_.provenance.source = "made by hand";
    trace_.shapes.intern({});
    trace_.threads.resize(threads);
    trace_.streams.resize(streams);
  }

  TraceBuilder& kernel(const Launched& at) {
    return launched(at, traces::HostCallKind::kLaunchKernel, traces::DeviceOpKind::kKernel);
  }
  TraceBuilder& copy(const Launched& at) {
    return launched(at, traces::HostCallKind::kCopy, traces::DeviceOpKind::kCopy);
  }
  TraceBuilder& memset(const Launched& at) {
    return launched(at, traces::HostCallKind::kMemset, traces::DeviceOpKind::kMemset);
  }
  TraceBuilder& collective(const Launched& at, const CollectiveAs& as) {
    traces::Collective collective;
    collective.kind = as.kind;
    collective.group = trace_.names.intern(as.group);
    collective.group_size = as.group_size;
    collective.peers = as.peers;
    collective.sequence_recorded = as.sequence.has_value();
    collective.sequence = as.sequence.value_or(0);
    launched(at, traces::HostCallKind::kLaunchKernel, traces::DeviceOpKind::kCollective);
    trace_.device_ops.back().collective = static_cast<std::uint32_t>(trace_.collectives.size());
    trace_.collectives.push_back(std::move(collective));
    return *this;
  }
  /// An operation whose launch was not recorded; `called` and `returned` are not used.
  TraceBuilder& orphan(const Launched& at) {
    add_op(at, traces::DeviceOpKind::kKernel);
    return *this;
  }
  TraceBuilder& call(traces::HostCallKind kind, const Called& at) {
    traces::HostCall& call = add_call(kind, at.start, at.end, at.thread);
    call.stream = at.stream;
    call.event = at.event;
    return *this;
  }
  TraceBuilder& stream_sync(std::int64_t start, std::int64_t end, std::uint32_t stream = 0) {
    return call(traces::HostCallKind::kStreamSync, {start, end, 0, stream});
  }
  TraceBuilder& record_event(std::int64_t start, std::int64_t end, std::uint32_t stream,
                             std::uint64_t event) {
    return call(traces::HostCallKind::kEventRecord, {start, end, 0, stream, event});
  }
  /// The stream waits for the event.
  TraceBuilder& await_event(std::int64_t start, std::int64_t end, std::uint32_t stream,
                            std::uint64_t event) {
    return call(traces::HostCallKind::kStreamWaitEvent, {start, end, 0, stream, event});
  }
  TraceBuilder& stream_kind(std::uint32_t stream, traces::StreamKind kind) {
    trace_.streams[stream].kind = kind;
    return *this;
  }
  /// A thread held by a full launch queue.
  TraceBuilder& queue_full(std::int64_t start, std::int64_t end, std::uint32_t thread = 0) {
    trace_.stalls.push_back({instant(start), instant(end) - instant(start), ThreadId{thread},
                             traces::StallKind::kQueueFull});
    return *this;
  }
  /// An edge between operations, which are numbered in the order in which they were added.
  TraceBuilder& edge(std::uint32_t before, std::uint32_t after) {
    trace_.edges.push_back({DeviceOpId{before}, DeviceOpId{after}, false});
    return *this;
  }
  /// `number`: by default the number of markers so far.
  TraceBuilder& iteration(std::int64_t start, std::int64_t end, std::uint32_t thread = 0,
                          std::optional<std::int64_t> number = {}) {
    traces::Marker marker;
    marker.start = instant(start);
    marker.duration = instant(end) - instant(start);
    marker.thread = ThreadId{thread};
    marker.kind = traces::MarkerKind::kIteration;
    marker.number = number.value_or(static_cast<std::int64_t>(trace_.markers.size()));
    trace_.markers.push_back(marker);
    return *this;
  }

  /// The recording, with its records in order of start.
  [[nodiscard]] traces::RankTrace trace() const {
    traces::RankTrace result = trace_;
    const std::vector<std::uint32_t> call_places = traces::places_by_start(result.host_calls);
    const std::vector<std::uint32_t> op_places = traces::places_by_start(result.device_ops);
    for (traces::DeviceOp& op : result.device_ops) {
      if (op.launch != traces::kNone) op.launch = call_places[op.launch];
    }
    for (traces::Edge& edge : result.edges) {
      edge.before.value = op_places[edge.before.index()];
      edge.after.value = op_places[edge.after.index()];
    }
    return result;
  }

 private:
  static TraceTime instant(std::int64_t us) { return TraceTime{std::chrono::microseconds{us}}; }

  TraceBuilder& launched(const Launched& at, traces::HostCallKind call, traces::DeviceOpKind kind) {
    add_call(call, at.called, at.returned, at.thread).name = trace_.names.intern(at.call);
    add_op(at, kind).launch = static_cast<std::uint32_t>(trace_.host_calls.size() - 1);
    return *this;
  }

  traces::HostCall& add_call(traces::HostCallKind kind, std::int64_t start, std::int64_t end,
                             std::uint32_t thread) {
    traces::HostCall call;
    call.kind = kind;
    call.start = instant(start);
    call.duration = instant(end) - call.start;
    call.thread = ThreadId{thread};
    trace_.host_calls.push_back(call);
    return trace_.host_calls.back();
  }

  traces::DeviceOp& add_op(const Launched& at, traces::DeviceOpKind kind) {
    traces::DeviceOp op;
    op.kind = kind;
    op.start = instant(at.start);
    op.duration = instant(at.end) - op.start;
    op.name = trace_.names.intern(at.name);
    op.direction = at.direction;
    op.stream = StreamId{at.stream};
    trace_.device_ops.push_back(op);
    return trace_.device_ops.back();
  }

  traces::RankTrace trace_;
};

/// An all-reduce from `start` to `end`, launched 10 before it.
inline Launched from_to(std::int64_t start, std::int64_t end) {
  return {.called = start - 10, .returned = start - 8, .start = start, .end = end,
          .name = "ncclAllReduce"};
}

/// One rank with a collective; nothing else but a call at 0.
inline TraceBuilder rank_with(std::uint32_t rank, const Launched& at, const CollectiveAs& as = {}) {
  TraceBuilder trace(rank);
  trace.call(traces::HostCallKind::kOther, {.start = 0, .end = 1}).collective(at, as);
  return trace;
}

}  // namespace bubblesim::workload
