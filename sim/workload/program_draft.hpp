// A program under construction: recorded times, and findings about them. Internal to the builder.
//
// Size: sizeof(DraftOp) + sizeof(DraftCall) <= 96 bytes a launched kernel; rare parts of operations
// and calls are in lists of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/program.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/shared_hosts.hpp"
#include "traces/inspect/sensitivities.hpp"
#include "traces/iterations/host_clock.hpp"
#include "traces/iterations/job_pass.hpp"
#include "traces/trace.hpp"

namespace bubblesim::workload {

/// An operation of this pass (into Draft::ops), or of an earlier one.
struct Before {
  std::uint32_t op = program::kNoIndex;
  std::uint32_t passes_back = 0;
};

/// A dependency on an operation; a link in the list of the waiting operation or call.
struct DraftEdge {
  std::uint32_t before = program::kNoIndex;  ///< into Draft::ops
  std::uint32_t next = program::kNoIndex;    ///< into Draft::edges; kNoIndex: the last
  Duration lag{};
  std::uint32_t passes_back = 0;             ///< as OpEdge
  bool inferred = false;                     ///< not from a call or edge of the recording
};

struct DraftOp {
  TraceTime start{};
  TraceTime end{};
  Duration launch_lag{};
  Duration gap{};
  std::uint32_t recorded = 0;                    ///< into RankTrace::device_ops
  std::uint32_t call = program::kNoIndex;        ///< the launching call, into Draft::calls
  std::uint32_t previous = program::kNoIndex;    ///< on the same stream, in the same pass
  std::uint32_t first_edge = program::kNoIndex;  ///< into Draft::edges
};

/// An unexplained start.
struct DraftDelay {
  std::uint32_t op = program::kNoIndex;  ///< into Draft::ops
  TraceTime since{};                     ///< when all its known causes were over
};

/// Rare parts of calls: their waits.
struct DraftWait {
  traces::QueueWait queue;                     ///< launches: the wait for room in a full launch
                                               ///< queue
  std::uint32_t queue_op = program::kNoIndex;  ///< the operation whose end made room, into
                                               ///< Draft::ops
  Duration queue_lag{};                        ///< from that end until the launch
  Duration return_lag{};
  bool returns = false;                        ///< has a return lag
  bool inferred = false;                       ///< the call does not name the awaited work
  TraceTime until{};                           ///< if the call returns: the end of the awaited work
  std::uint32_t after = program::kNoIndex;     ///< hand-over: into Draft::calls
  PeerCall peer{program::kNoIndex, 0, {}, {}, 0};  ///< hand-over of another rank; kNoIndex: of none
  std::uint32_t passes_back = 0;               ///< as StepDetail
  std::uint32_t first_also = program::kNoIndex;  ///< further awaited operations, as DraftOp
};

struct DraftCall {
  TraceTime start{};
  TraceTime end{};
  Duration cost{};
  std::uint32_t thread = 0;
  std::uint32_t recorded = traces::kNone;  ///< into RankTrace::host_calls; a poll: the last query
  std::uint32_t target = 0;                ///< as Step::target; of launches into Draft::ops
  std::uint32_t op_count = 0;
  std::uint32_t wait = program::kNoIndex;  ///< into Draft::waits
  program::StepKind kind = program::StepKind::kPause;
  traces::HostCallKind recorded_kind = traces::HostCallKind::kOther;
  bool closes_pass = false;                ///< not recorded: keeps the host's lead (close_pass)
};

static_assert(sizeof(DraftOp) + sizeof(DraftCall) <= 96);

struct Draft {
  const traces::RankTrace* trace = nullptr;
  const traces::RankPass* pass = nullptr;  ///< null: the whole recording, once
  HostShare share;
  TraceTime begin{};                       ///< of the window, as `moved`
  TraceTime end{};
  std::vector<DraftOp> ops;      ///< in launch order: call start, then start
  std::vector<DraftCall> calls;  ///< by start; every call that becomes a step
  std::vector<DraftEdge> edges;  ///< of all operations and waits, unordered
  std::vector<DraftWait> waits;  ///< of all calls, unordered
  std::vector<std::vector<std::uint32_t>> stream_ops;  ///< by stream, in start order
  /// The end of each stream's last operation in the previous pass, before this pass's first
  /// operation. Only for repeating passes.
  std::vector<std::optional<TraceTime>> first_held_by;
  std::vector<std::vector<std::uint32_t>> thread_calls;  ///< by thread, in start order
  std::vector<TraceTime> iteration_starts;
  TraceTime iterations_end{};
  std::uint32_t marked_thread = 0;
  bool marked = false;
  bool overruns = false;
  std::uint64_t ops_without_launch = 0;
  Duration host_ahead{};  ///< lead over the device's clock; negative: behind it
  std::vector<DraftDelay> unexplained;    ///< by operation
  std::vector<DraftDelay> unknown_waits;  ///< since the start of the possibly awaited work
  traces::Explanation explained;
  CounterSet counters;

  /// Whether the window includes a host call that starts at a recorded instant.
  [[nodiscard]] bool holds(TraceTime recorded) const {
    return pass == nullptr ? called(recorded) < end : pass->holds_call(recorded);
  }
  /// A recorded instant of the host's clock, without waits for work from before the pass.
  [[nodiscard]] TraceTime moved(TraceTime recorded) const {
    return pass == nullptr ? recorded : pass->without_waits(recorded);
  }
  /// A recorded instant of a host call in the draft's time: moved, and on the device's clock.
  [[nodiscard]] TraceTime called(TraceTime recorded) const { return moved(recorded) - host_ahead; }
  /// A recorded instant of an operation in the draft's time.
  [[nodiscard]] TraceTime ran(std::size_t op, TraceTime recorded) const {
    return pass == nullptr ? recorded : pass->ran_without_waits(op, recorded);
  }
  /// Whether the operation was queued before the recording, and ends the pass.
  [[nodiscard]] bool is_kept(std::size_t op) const {
    return pass != nullptr && pass->later(op) != Duration{};
  }
  /// The end of a stream's last operation, one pass earlier; nothing if passes do not repeat.
  [[nodiscard]] std::optional<TraceTime> pass_before(std::uint32_t stream) const {
    if (pass == nullptr || stream_ops[stream].empty()) return std::nullopt;
    return ops[stream_ops[stream].back()].end - pass->length;
  }
  [[nodiscard]] const traces::DeviceOp& recorded(const DraftOp& op) const {
    return trace->device_ops[op.recorded];
  }
  [[nodiscard]] std::size_t stream_of(const DraftOp& op) const {
    return recorded(op).stream.index();
  }
  /// The stream and the event that a call's record names; none, or 0: no name.
  [[nodiscard]] std::uint32_t named_stream(const DraftCall& call) const {
    return call.recorded == traces::kNone ? traces::kNone : trace->host_calls[call.recorded].stream;
  }
  [[nodiscard]] std::uint64_t named_event(const DraftCall& call) const {
    return call.recorded == traces::kNone ? 0 : trace->host_calls[call.recorded].event;
  }
  /// The call's wait, made if it has none yet. Valid until the next one is made.
  DraftWait& wait_of(DraftCall& call) {
    if (call.wait == program::kNoIndex) {
      call.wait = static_cast<std::uint32_t>(waits.size());
      waits.emplace_back();
    }
    return waits[call.wait];
  }
  /// The call's wait, to read; an empty one if the call has none.
  [[nodiscard]] const DraftWait& wait_of(const DraftCall& call) const {
    static constexpr DraftWait kNoWait{};
    return call.wait == program::kNoIndex ? kNoWait : waits[call.wait];
  }
  /// Whether the call follows a call of another rank.
  [[nodiscard]] bool has_peer(const DraftCall& call) const {
    return wait_of(call).peer.rank != program::kNoIndex;
  }
  /// Adds a dependency after the operation's others.
  DraftEdge& add_edge(DraftOp& op, std::uint32_t before, Duration lag,
                      std::uint32_t passes_back = 0);
  /// The operation's end, in the time of its pass.
  [[nodiscard]] TraceTime end_of(Before before) const {
    return ops[before.op].end - (before.passes_back == 0 ? Duration{}
                                                         : before.passes_back * pass->length);
  }
  [[nodiscard]] TraceTime end_of(const DraftEdge& edge) const {
    return end_of(Before{edge.before, edge.passes_back});
  }
  [[nodiscard]] std::size_t edge_count(const DraftOp& op) const;
};

/// Sets the window of the draft's pass, or of its whole recording: bounds, iterations, clock.
void set_window(Draft& draft);
/// Whether a call that launches nothing still becomes a step, since it may wait for the device.
bool may_wait(const traces::RankTrace& trace, const traces::HostCall& call);
/// Collects the calls and operations of a pass, or of the whole recording (null).
Draft collect(const traces::RankTrace& trace, const traces::RankPass* pass, Window window,
              HostShare share);
/// Makes operations of one stream follow each other.
void trim_overlaps(Draft& draft);
/// Adds recorded and inferred edges.
void find_edges(Draft& draft);
/// Adds stream waits that may be another stream's to the unexplained ones.
void add_unknown_waits(Draft& draft);
/// Splits the time between an operation's start and its causes into lags.
void assign_lags(Draft& draft);
/// Finds the work that synchronising calls waited for.
void find_waits(Draft& draft);
/// The end of the previous operation on its stream; nothing: it is the stream's first ever.
std::optional<TraceTime> follows(const Draft& draft, const DraftOp& op);
/// Counts the causes of starts and waits, and the unexplained time (traces/inspect).
void explain_times(Draft& draft);
/// Ties calls to earlier calls of the same thread for other ranks.
void find_peer_calls(Draft& draft);
/// Finds pauses that another thread's call ends.
void find_hand_overs(Draft& draft);
/// Ties threads with independent starts to the marked thread's first iteration.
void tie_free_threads(Draft& draft);
/// The index of each recorded operation in Draft::ops; kNoIndex: outside the window.
std::vector<std::uint32_t> place_of_each(const Draft& draft);
/// Writes the finished program, freeing the draft's parts on the way. `places`: of the calls of a
/// rank that shares its host.
program::Program emit(Draft draft, const hardware::GpuSpec& spec, std::vector<CallPlace>& places);

}  // namespace bubblesim::workload
